"""Plans of sessions from a prepared file, and processes that stay within them."""

from pathlib import Path

import pytest

import tightship
from tests import decoders
from tests.loading.test_session_plan import SIZE, run
from tightship.engine.compile.compile_graph import Settings
from tightship.loading.restoring import Asked
from tightship.loading.session_plan import SessionPlanner, session_planner
from tightship.loading.stored_session_plan import StoredSessionPlanner, stored_planner


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A decoder, and what was prepared of it for sessions of 1024 and 64 tokens."""
    folder = tmp_path_factory.mktemp("decoder")
    model, prepared = folder / "decoder.onnx", folder / "decoder.tship"
    model.write_bytes(decoders.llama(SIZE))
    tightship.prepare(model, prepared, context=(1024, 64))
    return model, prepared


def planners(files: tuple[Path, Path]) -> tuple[StoredSessionPlanner, SessionPlanner]:
    model, prepared = files
    return stored_planner(prepared, Asked(), {}), session_planner(model, None, Settings())


def test_a_process_that_fills_its_contexts_stays_within_the_plan(files: tuple[Path, Path]) -> None:
    stored, whole = (planner.plan(1024) for planner in planners(files))
    planned = stored.peak_bytes(2)
    assert planned < whole.peak_bytes(2)
    found = run(files[1], 1024, 2, planned, 1024, shapes=None)
    assert found["gained"] <= planned
    assert not found["openssl"]


def test_parts_of_the_plan_are_those_of_the_onnx_file(files: tuple[Path, Path]) -> None:
    stored, whole = (planner.plan(1024) for planner in planners(files))
    assert (stored.io_bytes, stored.state_bytes) == (whole.io_bytes, whole.state_bytes)
    assert stored.bytes_per_token == whole.bytes_per_token
    assert 0 <= stored.weights_bytes - whole.weights_bytes <= 9 * 4096  # whole pages
    assert stored.arena_bytes - whole.arena_bytes >= 0


def test_the_largest_context_is_one_of_the_file(files: tuple[Path, Path]) -> None:
    stored, _ = planners(files)
    short, long = (stored.plan(context).peak_bytes(1) for context in (64, 1024))
    assert stored.least_context == 64
    found = [stored.largest_context(limit, 1) for limit in (short - 1, short, long - 1, long)]
    assert found == [0, 64, 64, 1024]


def test_what_the_file_does_not_have_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    stored, _ = planners(files)
    with pytest.raises(tightship.InputError, match="128 tokens, only of 64, 1024"):
        stored.plan(128)
    for given in ({"cache": "int8"}, {"given": {"batch_size": 2}}):
        planner = stored_planner(files[1], Asked(), **{"given": {}, **given})
        with pytest.raises(tightship.InputError, match="no programs for sessions"):
            planner.plan(64)
    plain = tmp_path / "plain.tship"
    tightship.prepare(decoders.llama(), plain)
    with pytest.raises(tightship.InputError, match="prepare it with them, by `--context`"):
        stored_planner(plain, Asked(), {}).largest_context(1 << 40, 1)
