"""Sessions of decoders of T5 and BART, whose caches of an encoder's rows never change."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import tightship
from tests.decoder_exports import merged
from tests.encoder_decoder_exports import bart, t5
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.loading.restoring import Asked
from tightship.loading.session_plan import session_planner
from tightship.loading.stored_session_plan import stored_planner

Arrays = Mapping[str, NDArray[Any]]
CONTEXT, ROWS = 40, 6
EXPORTS: Mapping[str, Callable[[], bytes]] = {
    "T5": t5,
    "BART by TorchScript": partial(bart, flat=True),
    "BART by dynamo": partial(bart, flat=False),
}


def given_of(batch: int) -> dict[str, NDArray[Any]]:
    """Return what an encoder gives once, the last text with fewer rows."""
    random = np.random.default_rng(3)
    mask = np.ones((batch, ROWS), np.int64)
    mask[-1, -2:] = 0
    caches = {
        f"past_key_values.{layer}.encoder.{part}": random.standard_normal(
            (batch, 4, ROWS, 8), np.float32
        )
        for layer in range(2)
        for part in ("key", "value")
    }
    return {"encoder_attention_mask": mask, **caches}


def loop_of(data: bytes, given: Arrays, texts: list[list[int]]) -> list[NDArray[Any]]:
    """Logits of the last tokens by ONNX Runtime, whose caches grow."""
    session, found = onnxruntime.InferenceSession(data), []
    batch = len(given["encoder_attention_mask"])
    names = [each.name for each in session.get_inputs() if ".decoder." in each.name]
    caches = {name: np.zeros((batch, 4, 0, 8), np.float32) for name in names}
    for ids in texts:
        tokens = np.tile(np.array(ids, np.int64), (batch, 1))
        outputs = session.run(None, {"input_ids": tokens, **given, **caches})
        named = dict(zip([each.name for each in session.get_outputs()], outputs, strict=True))
        caches = {name: named[name.replace("past_key_values", "present")] for name in names}
        found.append(named["logits"][:, -1])
    return found


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", EXPORTS)
def test_logits_are_those_of_growing_caches(name: str, batch: int) -> None:
    """T5's distances exceed the farthest bucket, at positions that only a run tells."""
    data, given = EXPORTS[name](), given_of(batch)
    texts = [[*range(13)], *[[each] for each in (6, 5, 3, 5, 8, 9)], [1, 2, 3], [*range(17)]]
    wanted = loop_of(data, given, texts)
    with tightship.load(data, shapes={"batch_size": batch}) as model:
        session = model.session(context=CONTEXT, batch=batch, chunk=8, inputs=given)
        for ids, logits in zip(texts, wanted, strict=True):
            found = session.step([ids] * batch)[:, -1]
            np.testing.assert_allclose(found, logits, rtol=2e-5, atol=2e-5)
        assert session.length == CONTEXT - 1
        assert session._programs.count == 4  # 8, 4, 2 and 1 tokens
        assert all(session._inputs[name] is array for name, array in given.items())


def test_a_merged_file_runs_its_branch_with_caches() -> None:
    given = given_of(1)
    with tightship.load(t5()) as model, tightship.load(merged(t5())) as other:
        one, same = (each.session(CONTEXT, inputs=given).step([3, 1, 4]) for each in (model, other))
    np.testing.assert_array_equal(one, same)


def test_a_plan_counts_what_an_encoder_gives_to_each_session() -> None:
    data, given = t5(), given_of(1)
    planner = session_planner(data, {"encoder_sequence_length": ROWS}, Settings())
    planner.chunk = 8
    planned = planner.plan(CONTEXT)
    shapes = {name: array.shape for name, array in given.items()}
    shapes |= {"input_ids": (1, 1)}
    own = [f"past_key_values.{n}.decoder.{part}" for n in (0, 1) for part in ("key", "value")]
    shapes |= dict.fromkeys(own, (1, 4, 3, 8))
    with tightship.load(data, shapes=shapes) as model:
        session = model.session(CONTEXT, chunk=8, inputs=given)
        held = [session._programs.program(size) for size in (8, 4, 2, 1)]
        largest = max(each.first_plan.arena_bytes for each in held)
        assert planned.arena_bytes == model.plan.arena_bytes + largest
        packed = aligned_offsets(copy.weight for copy in session._programs.packed)[1]
        assert packed <= planned.weights_bytes <= packed + 4096
        once = sum(array.nbytes for array in given.values())
        assert planned.state_bytes == session.state_bytes + once
        assert planned.peak_bytes(3) - planned.peak_bytes(1) == 2 * planned.state_bytes


def test_a_prepared_file_opens_sessions_and_plans_what_each_is_given(tmp_path: Path) -> None:
    model, prepared = tmp_path / "t5.onnx", tmp_path / "t5.tship"
    model.write_bytes(t5())
    with pytest.raises(tightship.InputError, match="--shape encoder_sequence_length=1500"):
        tightship.prepare(model, prepared, context=CONTEXT, chunk=8)
    rows, given = {"encoder_sequence_length": ROWS}, given_of(1)
    tightship.prepare(model, prepared, shapes=rows, context=CONTEXT, chunk=8)
    with tightship.load(prepared) as stored, tightship.load(model) as other:
        sessions = [each.session(CONTEXT, chunk=8, inputs=given) for each in (stored, other)]
        found, wanted = (session.step([*range(13)]) for session in sessions)
        np.testing.assert_array_equal(found, wanted)
        once = sum(array.nbytes for array in given.values())
        planned = stored_planner(prepared, Asked(), {}).plan(CONTEXT)
        assert planned.state_bytes == sessions[0].state_bytes + once
        assert planned.peak_bytes(3) - planned.peak_bytes(1) == 2 * planned.state_bytes
    planner = session_planner(model, rows, Settings())
    planner.chunk = 8
    assert planner.plan(CONTEXT).io_bytes == planned.io_bytes
    assert planner.plan(CONTEXT).state_bytes == planned.state_bytes


def test_a_plan_without_the_rows_of_the_encoder_says_what_to_give() -> None:
    with pytest.raises(tightship.InputError, match="--shape encoder_sequence_length=1500"):
        session_planner(t5(), None, Settings())


def test_a_session_without_them_says_what_to_give() -> None:
    wanted = r"`encoder_attention_mask`.*`inputs`"
    with tightship.load(t5()) as model, pytest.raises(tightship.GraphError, match=wanted):
        model.session(CONTEXT)
