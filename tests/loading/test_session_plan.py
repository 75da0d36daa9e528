"""Plans of sessions, and processes that fill their contexts within them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tightship
from tests import decoders
from tests.frontend.gguf.decoders import decoder
from tests.qdq_decoders import qdq
from tightship.engine.compile.compile_graph import Settings
from tightship.loading import session_plan
from tightship.loading.session_plan import SessionPlanner, session_planner

SIZE = decoders.Size(layers=2, heads=8, shared=4, length=32, vocabulary=500, positions=8192)

STEP = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 3}
SCRIPT = """
import json, resource, sys
import numpy as np
import tightship

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

path, context, count, data_limit, tokens, pool_bytes, chunk, cache, share, shapes = json.loads(
    sys.argv[1]
)
before = {"resident": status("VmRSS"), "data": status("VmData")}
if data_limit:
    limit = before["data"] + data_limit
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
with tightship.load(path, shapes=shapes, share=share) as model:
    pool = tightship.SessionPool(pool_bytes, at_cap="evict") if pool_bytes else None
    sessions = [model.session(context, pool=pool, chunk=chunk, cache=cache) for _ in range(count)]
    for session in sessions:
        session.step(np.arange(tokens - 2) % 50)
        session.step([1])
        logits = session.step([2])
    print(json.dumps({
        "gained": status("VmHWM") - before["resident"],
        "resident": status("VmRSS") - before["resident"],
        "finite": bool(np.isfinite(logits).all()),
        "openssl": "_hashlib" in sys.modules,
    }))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoder") / "decoder.onnx"
    path.write_bytes(decoders.llama(SIZE))
    return path


def planner_of(file: Path) -> SessionPlanner:
    return session_planner(file, None, Settings())


def run(
    file: Path, context: int, count: int, limit: int | None, tokens: int, pool: int = 0, *,
    chunk: int = 128, cache: str | None = None, share: bool = False,
    shapes: dict[str, int] | None = STEP,
) -> dict[str, int]:  # fmt: skip
    numbers = context, count, limit, tokens, pool, chunk
    given = json.dumps([str(file), *numbers, cache, share, shapes])
    command = [sys.executable, "-c", SCRIPT, given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    assert found["finite"]
    return found


@pytest.mark.parametrize(
    ("context", "count", "chunk"), [(2048, 1, 128), (1024, 3, 128), (2048, 1, 1), (1024, 1, 16)]
)
def test_a_process_that_fills_its_contexts_stays_within_the_plan(
    file: Path, context: int, count: int, chunk: int
) -> None:
    planner = planner_of(file)
    planner.chunk = chunk
    planned = planner.plan(context).peak_bytes(count)
    found = run(file, context, count, planned, context, chunk=chunk)
    assert found["gained"] <= planned
    assert planned <= 1.15 * found["gained"]


def test_a_decoder_in_gguf_is_planned_by_few_layers_as_it_is_loaded(tmp_path: Path) -> None:
    """Few of equal layers are read; the plan of two and three of them counts them once as well.

    Passes and lowering leave little of the others, which the plan counts as if all went through.
    """
    path = tmp_path / "decoder.gguf"
    path.write_bytes(decoder("llama", "Q8_0", layers=24).written())
    planner = planner_of(path)
    planner.chunk = 32
    planned = planner.plan(512).peak_bytes(1)
    with tightship.load(path) as model:
        session = model.session(512, chunk=32)
        own = model.plan.peak_bytes + session._programs.planned_bytes() + session.state_bytes
    assert planned == own
    found = run(path, 512, 1, planned, 512, chunk=32, shapes=None)
    assert found["gained"] <= planned <= 1.35 * found["gained"]


def test_a_process_that_prepares_for_others_has_no_more_than_one_that_does_not(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process stores programs as well: what stays is the code that does so.

    Two dozen modules take some 0.45 MiB; a program held twice would take five.
    """
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path))
    planner = planner_of(file)
    planner.chunk = 32
    planned = planner.plan(512).peak_bytes(2)
    first, alone, later = (
        run(file, 512, 2, planned, 512, chunk=32, share=share) for share in (True, False, True)
    )
    assert first["gained"] <= planned
    assert first["gained"] <= alone["gained"] + (1 << 20)
    assert later["gained"] <= alone["gained"] - (5 << 20)  # neither onnx nor lowering
    assert not any(found["openssl"] for found in (first, alone, later))


def test_caches_of_fewer_bits_are_planned_as_exactly(file: Path) -> None:
    """Processes stay below their plans by as much, whatever the type."""
    wide = planner_of(file).plan(2048)
    plans = {None: wide} | {
        kind: session_planner(file, None, Settings(), kind).plan(2048)
        for kind in ("float16", "int8")
    }
    assert plans["float16"].bytes_per_token == wide.bytes_per_token / 2
    assert plans["int8"].bytes_per_token == wide.bytes_per_token * 36 / 128
    for plan in plans.values():
        assert plan.arena_bytes <= wide.arena_bytes + (1 << 18)  # a block of keys or values
    left = []
    for kind in (None, "int8"):
        planned = plans[kind].peak_bytes(3)
        left.append(planned - run(file, 2048, 3, planned, 2048, cache=kind)["gained"])
    assert left[0] >= 0
    assert 0 <= left[1] <= left[0] + (1 << 20)


def test_sessions_of_a_pool_stay_within_its_cap(file: Path) -> None:
    """Three contexts, of which one fits, are filled in turn."""
    plan = planner_of(file).plan(2048)
    planned = plan.peak_bytes(0) + plan.state_bytes
    found = run(file, 2048, 3, planned, 2048, plan.state_bytes)
    assert found["gained"] <= planned


def test_state_is_what_the_caches_take(file: Path) -> None:
    small, large = (planner_of(file).plan(context) for context in (1024, 4096))
    assert small.bytes_per_token == 2 * 2 * 4 * 32 * 4
    assert large.state_bytes == 4096 * small.bytes_per_token
    assert large.peak_bytes(3) - large.peak_bytes(1) == 2 * large.state_bytes


def test_the_largest_context_fits_and_the_next_does_not(file: Path) -> None:
    planner = planner_of(file)
    limit = planner.plan(1500).peak_bytes(2)
    found = planner.largest_context(limit, 2)
    assert 1500 - 64 < found <= 1500
    assert planner.plan(found).peak_bytes(2) <= limit < planner.plan(found + 64).peak_bytes(2)
    assert planner.largest_context(1 << 20, 1) == 0


def test_plans_between_two_that_differ_in_caches_alone_are_not_made_again(file: Path) -> None:
    planner, other = planner_of(file), planner_of(file)
    assert planner.plan(512).peak_bytes(0) == planner.plan(2048).peak_bytes(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionPlanner, "_planned", None)
        found = [planner.plan(context) for context in (513, 1000, 2047)]
    assert found == [other.plan(context) for context in (513, 1000, 2047)]


def int8(size: decoders.Size) -> bytes:
    return qdq(decoders.llama(size), 8)


def int8_zeros(size: decoders.Size) -> bytes:
    return qdq(decoders.llama(size), 8, has_zeros=True)


def int4(size: decoders.Size) -> bytes:
    return qdq(decoders.attention23(size), 4, has_zeros=True)


@pytest.mark.parametrize(
    "make", [decoders.llama, decoders.gpt2, decoders.genai, int8, int8_zeros, int4]
)
def test_a_model_of_equal_layers_is_planned_by_few_of_them(make: Callable[..., bytes]) -> None:
    """The plan is that of the whole model, to the byte."""
    data = make(decoders.Size(layers=7))
    few, whole = (session_planner(data, None, Settings()) for _ in range(2))
    whole._few = ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_plan, "LAYERS_MIN", 4)
        lowered, own = [], SessionPlanner._parts
        patch.setattr(
            SessionPlanner, "_parts", lambda *given: lowered.append(given[1]) or own(*given)
        )
        found = few.plan(64)
    assert few.file not in lowered
    assert found == whole.plan(64)


def test_a_table_of_the_file_limits_the_context() -> None:
    size = decoders.Size(shared=4, positions=256)
    planner = session_planner(decoders.gpt2(size), None, Settings())
    assert planner.largest_context(16 << 30, 1) == 256


def test_a_batch_is_given_by_its_name(file: Path) -> None:
    one, two = (
        session_planner(file, given, Settings()).plan(512) for given in (None, {"batch_size": 2})
    )
    assert two.state_bytes == 2 * one.state_bytes
    with pytest.raises(tightship.InputError, match="batch_size"):
        session_planner(file, {"sequence_length": 2}, Settings())


def test_a_model_without_caches_is_refused() -> None:
    from tests.small_models import dense

    with pytest.raises(tightship.GraphError, match="no caches"):
        session_planner(dense()[0], None, Settings()).plan(64)


def test_a_prepared_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    data = decoders.gpt2()
    tightship.prepare(data, tmp_path / "decoder.tship")
    with pytest.raises(tightship.InputError, match="programs for its own sessions only"):
        session_planner(tmp_path / "decoder.tship", None, Settings())
