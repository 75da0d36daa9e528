"""Files as models: planned, loaded, prepared, shared."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, Model, decoder, logits
from tests.frontend.gguf.written import written
from tightship.engine.compile.compile_graph import Settings
from tightship.errors import GraphError
from tightship.frontend.gguf import open_bytes
from tightship.loading.session_plan import session_planner


@pytest.fixture(scope="module")
def model() -> Model:
    return decoder("llama", "Q4_0", layers=13)


def test_weights_have_the_bytes_of_the_file(model: Model) -> None:
    plan = tightship.plan(model.written())
    stored = sum(len(tensor.raw) for tensor in model.tensors.values())
    padding = 64 * 3 * len(model.tensors)  # of small parts to whole lines
    assert stored <= plan.weights_bytes <= stored + padding


def test_few_layers_plan_as_the_whole_model_does(model: Model) -> None:
    few, whole = (session_planner(model.written(), None, Settings()) for _ in range(2))
    whole._few = ()
    assert few.plan(64) == whole.plan(64)
    assert few._few


def test_the_largest_context_is_what_the_model_was_trained_with(model: Model) -> None:
    planner = session_planner(model.written(), None, Settings())
    assert planner.largest_context(1 << 40, 1) == model.fields["context_length"] == 64
    peak = planner.plan(64).peak_bytes(1)
    assert planner.largest_context(peak - 1, 1) < 64
    assert planner.largest_context(0, 1) == 0


def test_the_planned_peak_is_limit_enough() -> None:
    data = decoder("llama", "Q4_0").written()
    peak = session_planner(data, None, Settings()).plan(64).peak_bytes(1)
    with tightship.load(data, max_memory=peak) as loaded:
        assert loaded.session(64).step(IDS).shape == (1, 1, 70)


def test_a_prepared_file_computes_the_same(tmp_path: Path) -> None:
    path, prepared, model = tmp_path / "m.gguf", tmp_path / "m.tship", decoder("llama", "Q4_0")
    path.write_bytes(model.written())
    tightship.prepare(path, prepared, context=32)
    path.unlink()
    with tightship.load(prepared) as loaded:
        found = loaded.session(32).step(IDS)[0, -1]
    wanted = logits(model)[-1]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_a_loop_without_a_session_computes_the_same(model: Model) -> None:
    shapes = {"batch_size": 1, "sequence_length": len(IDS), "past_sequence_length": 0,
              "total_sequence_length": len(IDS)}  # fmt: skip
    with tightship.load(model.written(), shapes=shapes) as loaded:
        caches = {name: np.zeros((1, 2, 0, 16), np.float32) for name in loaded.plan.inputs
                  if name.startswith("past")}  # fmt: skip
        ids, mask = np.array([IDS]), np.ones((1, len(IDS)), np.int64)
        found = loaded.run({"input_ids": ids, "attention_mask": mask, **caches})["logits"][0]
    np.testing.assert_allclose(found, logits(model), rtol=1e-4, atol=1e-3)


def test_other_kinds_of_files_are_refused(model: Model) -> None:
    data = model.written().replace(b"general.architecture", b"general.architectur2", 1)
    with pytest.raises(tightship.FormatError, match=r"`general.architecture` is absent"):
        open_bytes(data)
    with pytest.raises(GraphError, match=r"of the type `adapter`, which is not supported"):
        open_bytes(written({"general.type": "adapter"}, {}))
