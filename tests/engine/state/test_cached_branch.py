"""Decoders of merged branches, and of caches with the rows of an encoder."""

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import tightship
from tests import decoders
from tests.decoder_exports import crossed, merged
from tests.engine.state.loops import FixedCaches, GrowingCaches, decoder
from tightship.errors import GraphError

Arrays = Mapping[str, NDArray[np.float32]]


def test_steps_are_those_of_the_branch_with_caches() -> None:
    data = decoders.llama()
    growing, fixed = GrowingCaches(data), FixedCaches(merged(data), 24)
    for ids in ([3, 1, 4, 1], [5], [9, 2], [6]):
        np.testing.assert_allclose(fixed.step(ids), growing.step(ids), rtol=2e-5, atol=2e-5)


def test_a_flag_that_another_node_reads_is_refused() -> None:
    model = onnx.load_from_string(merged(decoders.llama()))
    model.graph.node.append(onnx.helper.make_node("Not", ["use_cache_branch"], ["other"]))
    model.graph.output.append(onnx.ValueInfoProto(name="other"))
    with pytest.raises(GraphError, match="decides more than a branch"):
        decoder(model.SerializeToString(), 24).graph(1, last=False)


@pytest.mark.parametrize("batch", [1, 2])
def test_rows_of_an_encoder_are_given_once(batch: int) -> None:
    data, random = crossed(), np.random.default_rng(3)
    fixed = {
        f"past_key_values.{layer}.encoder.{part}": random.standard_normal((batch, 4, 6, 8)).astype(
            np.float32
        )
        for layer in range(2)
        for part in ("key", "value")
    }
    shapes = {name: array.shape for name, array in fixed.items()}
    own = [f"past_key_values.{layer}.{part}" for layer in (0, 1) for part in ("key", "value")]
    shapes |= dict.fromkeys(own, (batch, 4, 3, 8))
    with tightship.load(data, shapes={**shapes, "input_ids": (batch, 1)}) as model:
        session = model.session(context=24, batch=batch, inputs=fixed)
        assert session.state_bytes == 24 * batch * 2 * 2 * 4 * 8 * 4
        caches: Arrays = {name: np.zeros((batch, 4, 0, 8), np.float32) for name in own}
        other = onnxruntime.InferenceSession(data)
        for count in (5, 1, 1, 3):
            ids = random.integers(0, 50, (batch, count))
            logits, caches = stepped(other, {"input_ids": ids, **fixed}, caches)
            found = session.step(ids)
            np.testing.assert_allclose(found[:, -1], logits[:, -1], rtol=2e-5, atol=2e-5)
        with pytest.raises(GraphError, match=r"encoder\.key.* in `inputs`"):
            model.session(context=24, batch=batch)


def stepped(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, NDArray[np.generic]], caches: Arrays
) -> tuple[NDArray[np.float32], Arrays]:
    """Logits of a step of ONNX Runtime, and the caches after it."""
    found = session.run(None, {**inputs, **caches})
    outputs = dict(zip([o.name for o in session.get_outputs()], found, strict=True))
    return outputs["logits"], {n: outputs[n.replace("past_key_values", "present")] for n in caches}


def test_an_encoder_cache_that_a_file_returns_is_no_text() -> None:
    model = onnx.load_from_string(crossed())
    name = "past_key_values.0.encoder.key"
    model.graph.node.append(onnx.helper.make_node("Identity", [name], ["present.0.encoder.key"]))
    model.graph.output.append(onnx.ValueInfoProto(name="present.0.encoder.key"))
    with pytest.raises(GraphError, match="rows of an encoder"):
        decoder(model.SerializeToString(), 24)
