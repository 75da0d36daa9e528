"""The OpenMP runtime that travels with the package, called as GCC's code calls it."""

import ctypes
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.at_once import at_once
from tightship import _core

ROOT = Path(__file__).parents[2]
RUNTIME = Path(_core.__file__).parent / "libtsomp.so"
pytestmark = pytest.mark.skipif(not RUNTIME.exists(), reason="built without threads of its own")

Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
Long = ctypes.c_long
openmp = ctypes.CDLL(str(RUNTIME)) if RUNTIME.exists() else None
if openmp is not None:
    openmp.TSMP_loop_static_start.restype = openmp.TSMP_loop_static_next.restype = ctypes.c_bool


def parallel(count: int, body: Callable[[], object]) -> None:
    """A region of `count` logical threads, which must all have run `body` at its end."""
    openmp.TSMP_parallel(Function(lambda _: body()), None, count, 0)


def iterations(start: int, stop: int, step: int, chunk: int) -> list[int]:
    """Return the iterations of a loop with a static schedule that the calling ticket gets."""
    first, last = Long(), Long()
    found: list[int] = []
    bounds = (Long(start), Long(stop), Long(step), Long(chunk))
    more = openmp.TSMP_loop_static_start(*bounds, ctypes.byref(first), ctypes.byref(last))
    while more:
        found += range(first.value, last.value, step)
        more = openmp.TSMP_loop_static_next(ctypes.byref(first), ctypes.byref(last))
    openmp.TSMP_loop_end_nowait()
    return found


def workers() -> set[str]:
    """Numbers of the threads, of whichever team."""
    tasks = Path("/proc/self/task").iterdir()
    return {task.name for task in tasks if name_of(task) == "tightship\n"}


def name_of(task: Path) -> str:
    """Empty for a thread that has ended since it was listed."""
    try:
        return (task / "comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 1024])
def test_each_ticket_runs_once(count: int) -> None:
    for _ in range(20 if count < 9 else 2):
        ran: list[int] = []
        openmp.tsm_run(count, Call(lambda _, ticket, ran=ran: ran.append(ticket)), None)
        assert sorted(ran) == list(range(count))


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_tickets_that_wait_for_each_other_have_threads_of_their_own(count: int) -> None:
    meeting = threading.Barrier(count)
    openmp.tsm_meet(1)
    try:
        for _ in range(20):
            openmp.tsm_run(count, Call(lambda _, __: meeting.wait(20)), None)
    finally:
        openmp.tsm_meet(0)
    assert not meeting.broken


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_region_knows_its_tickets(count: int) -> None:
    seen: list[tuple[int, int, int]] = []
    known = (openmp.tsm_get_thread_num, openmp.tsm_get_num_threads, openmp.tsm_in_parallel)
    parallel(count, lambda: seen.append(tuple(each() for each in known)))
    assert sorted(seen) == [(ticket, count, int(count > 1)) for ticket in range(count)]
    assert [each() for each in known] == [0, 1, 0]


def test_a_region_started_and_ended_apart_is_the_same() -> None:
    seen: list[int] = []
    function = Function(lambda _: seen.append(openmp.tsm_get_thread_num()))
    openmp.TSMP_parallel_start(function, None, 3)
    function(None)
    openmp.TSMP_parallel_end()
    assert sorted(seen) == [0, 1, 2]
    assert openmp.tsm_get_num_threads() == 1


def test_no_ticket_passes_a_barrier_before_all_have_come() -> None:
    for _ in range(50):
        arrived: list[int] = []
        passed: list[int] = []

        def body(arrived: list[int] = arrived, passed: list[int] = passed) -> None:
            for round_number in range(1, 4):
                arrived.append(openmp.tsm_get_thread_num())
                openmp.TSMP_barrier()
                passed.append(len(arrived) - 4 * round_number)
                openmp.TSMP_barrier()

        parallel(4, body)
        assert passed == [0] * 12


@settings(max_examples=60)
@given(
    st.integers(-50, 50), st.integers(-50, 50), st.sampled_from([-3, -1, 1, 2, 7]),
    st.integers(0, 5), st.integers(1, 5),
)  # fmt: skip
def test_a_static_loop_is_shared_out_as_openmp_says(
    start: int, stop: int, step: int, chunk: int, count: int
) -> None:
    got: dict[int, list[int]] = {}

    def body() -> None:
        got[openmp.tsm_get_thread_num()] = iterations(start, stop, step, chunk)

    parallel(count, body)
    every = list(range(start, stop, step))
    if chunk:
        expected = [
            [every[i] for i in range(len(every)) if i // chunk % count == ticket]
            for ticket in range(count)
        ]
        assert [got[ticket] for ticket in range(count)] == expected
    else:
        lengths = [len(got[ticket]) for ticket in range(count)]
        assert [i for ticket in range(count) for i in got[ticket]] == every
        assert lengths == sorted(lengths, reverse=True)
        assert max(lengths) - min(lengths) <= 1


def test_a_region_inside_another_has_one_thread() -> None:
    seen: list[tuple[int, int]] = []
    known = (openmp.tsm_get_num_threads, openmp.tsm_in_parallel)
    inner = Function(lambda _: seen.append(tuple(each() for each in known)))
    after: list[int] = []

    def body() -> None:
        openmp.TSMP_parallel(inner, None, 4, 0)
        openmp.tsm_run(3, Call(lambda *_: None), None)
        after.append(openmp.tsm_get_thread_num())

    parallel(2, body)
    assert seen == [(1, 1), (1, 1)]
    assert sorted(after) == [0, 1]


def test_a_count_of_threads_is_its_setters_own() -> None:
    before = openmp.tsm_get_max_threads()
    openmp.tsm_set_num_threads(5)
    elsewhere: list[int] = []
    thread = threading.Thread(target=lambda: elsewhere.append(openmp.tsm_get_max_threads()))
    thread.start()
    thread.join()
    seen: list[int] = []
    parallel(0, lambda: seen.append(openmp.tsm_get_num_threads()))
    openmp.tsm_set_num_threads(before)
    assert elsewhere == [1]
    assert seen == [5] * 5


def test_workers_end_with_the_thread_that_they_worked_for() -> None:
    before = workers()
    during: set[str] = set()

    def use() -> None:
        parallel(4, openmp.TSMP_barrier)
        during.update(workers() - before)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    end = time.monotonic() + 20
    while workers() & during and time.monotonic() < end:
        os.sched_yield()
    assert len(during) == 3
    assert not workers() & during


def test_many_threads_have_regions_at_once() -> None:
    wrong: list[int] = []

    def use() -> None:
        for count in [2, 3, 5] * 20:
            seen: list[int] = []

            def body(seen: list[int] = seen) -> None:
                openmp.TSMP_barrier()
                seen.append(openmp.tsm_get_thread_num())

            parallel(count, body)
            if sorted(seen) != list(range(count)):
                wrong.append(count)

    at_once(lambda _: use(), range(6))
    assert not wrong


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_gets_workers_of_its_own() -> None:
    parallel(3, openmp.TSMP_barrier)
    child = os.fork()
    if child == 0:
        seen: list[int] = []

        def body() -> None:
            openmp.TSMP_barrier()
            seen.append(openmp.tsm_get_thread_num())

        parallel(3, body)
        os._exit(0 if sorted(seen) == [0, 1, 2] and len(workers()) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    parallel(3, openmp.TSMP_barrier)


@pytest.mark.slow
def test_a_sanitizer_sees_no_race(tmp_path: Path) -> None:
    compiler, sources = shutil.which("g++"), ROOT / "native/omp"
    if compiler is None or not sources.exists():
        pytest.skip("no C++ compiler, or no sources, to make a program with")
    program = tmp_path / "stress"
    command = [
        compiler, "-std=c++20", "-O1", "-g", "-fsanitize=thread", "-pthread", f"-I{sources}",
        *map(str, sources.glob("*.cpp")), str(Path(__file__).with_name("stress_team.cpp")),
        "-o", str(program),
    ]  # fmt: skip
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("the compiler has no sanitizer for threads")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer does not run on this system")
    assert done.returncode == 0, done.stderr
