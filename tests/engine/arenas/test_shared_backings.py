import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import tightship
from tests.small_models import dense
from tightship.engine.arenas.retention import Retention
from tightship.engine.arenas.shared_backings import SharedBackings
from tightship.engine.run.limits import Limits
from tightship.resource import SharedArenaPool
from tightship.resource.private_folder import private

PATIENCE_S = 60
SMALL, LARGE = 2 << 20, 32 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
SHAPES = {"x": (4, 32)}


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 32), np.float32)


@pytest.fixture
def folder(tmp_path):
    return private(tmp_path / "run")


@pytest.fixture
def pool(folder):
    with SharedArenaPool(slots=1, folder=folder) as opened:
        yield opened


@pytest.fixture
def model(pool):
    with tightship.load(dense()[0], shapes=SHAPES, arena_pool=pool) as opened:
        yield opened


def test_results_are_those_of_an_arena_of_ones_own(model):
    with tightship.load(dense()[0], shapes=SHAPES) as own:
        for count in (4, 900, 1, 37, 900):
            np.testing.assert_array_equal(model(rows(count)), own(rows(count)))


def test_models_that_run_alternately_have_one_arena_which_is_the_largest(model, pool):
    def arena(count):
        return -(-model.plan_for({"x": (count, 32)}).arena_bytes // PAGE) * PAGE

    with tightship.load(dense(hidden=96)[0], shapes=SHAPES, arena_pool=pool) as other:
        for count in (4, 64, 9):
            model(rows(count))
            other(rows(count))
        large = -(-other.plan_for({"x": (64, 32)}).arena_bytes // PAGE) * PAGE
        assert pool.size_bytes == PAGE + max(large, arena(64))
        assert other.memory_stats().arena_bytes == 0
    model.release_unused_memory()
    assert pool.size_bytes == PAGE


def turn(backings, size_bytes):
    program = SimpleNamespace(arena_bytes=size_bytes, native=None, segments=(), sized=None)
    backings.release(backings.reserve(program, Limits(), 0), 0)


def test_memory_that_no_run_needs_goes_back_after_the_idle_time(pool):
    now_ns = 0
    backings = SharedBackings(pool, Retention(2.0, SMALL), lambda: now_ns)
    turn(backings, LARGE)
    now_ns = 2 * 10**9 - 1
    turn(backings, SMALL)
    assert pool.size_bytes == LARGE + PAGE
    now_ns += 1
    turn(backings, SMALL)
    assert pool.size_bytes == SMALL + PAGE
    backings.close()


def test_a_process_that_runs_no_more_gives_back_as_well(pool):
    before = set(threading.enumerate())
    backings = SharedBackings(pool, Retention(0.02, SMALL))
    turn(backings, LARGE)
    while watching := set(threading.enumerate()) - before:
        watching.pop().join(PATIENCE_S)
    assert pool.size_bytes == SMALL + PAGE
    backings.close()


def test_without_an_idle_time_slots_keep_what_they_have(pool):
    now_ns = 0
    backings = SharedBackings(pool, Retention(None, SMALL), lambda: now_ns)
    turn(backings, LARGE)
    now_ns = 10**12
    turn(backings, SMALL)
    assert backings.sweep() == 0
    assert pool.size_bytes == LARGE + PAGE
    backings.close()


def test_a_run_that_waits_for_a_slot_heeds_its_deadline_and_its_flag(model, pool):
    slot = pool.take(1)
    with pytest.raises(tightship.DeadlineError):
        model.run({"x": rows(4)}, timeout_s=0.02)
    stop = tightship.StopFlag()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(model.run, {"x": rows(4)}, stop=stop)
        stop.set()
        with pytest.raises(tightship.StoppedError):
            waiting.result(PATIENCE_S)
        waiting = threads.submit(model.run, {"x": rows(4)})
        pool.give(slot)
        assert waiting.result(PATIENCE_S)["y"].shape == (4, 8)


def test_threads_share_the_slots(model):
    wanted = {count: model(rows(count)).copy() for count in (2, 5, 300)}

    def work(count):
        for _ in range(30):
            np.testing.assert_array_equal(model(rows(count)), wanted[count])

    with ThreadPoolExecutor(3) as threads:
        for future in [threads.submit(work, count) for count in wanted]:
            future.result(PATIENCE_S)
    assert model.memory_stats().arena_used_bytes == 0


def test_a_limit_holds_for_runs_at_once(folder):
    plan = tightship.plan(dense()[0], shapes=SHAPES)
    limit = plan.peak_bytes
    with (
        SharedArenaPool(slots=4, folder=folder) as pool,
        tightship.load(dense()[0], shapes=SHAPES, max_memory=limit, arena_pool=pool) as model,
        ThreadPoolExecutor(4) as threads,
    ):
        for future in [threads.submit(model, rows(4)) for _ in range(40)]:
            assert future.result(PATIENCE_S).shape == (4, 8)
        assert model.memory_stats().arena_peak_bytes == plan.arena_bytes


def test_closing_waits_for_the_run_that_has_a_slot(model, pool):
    scope = model._programs.reserved(model._key, Limits())
    scope.__enter__()
    with ThreadPoolExecutor(1) as threads:
        closing = threads.submit(model.close)
        with pytest.raises(TimeoutError):
            closing.result(0.05)
        scope.__exit__(None, None, None)
        closing.result(PATIENCE_S)
    assert pool.take(1) is not None


def test_a_slot_that_may_not_be_so_large_is_refused_at_load(folder):
    with (
        SharedArenaPool(slots=1, max_arena=1, folder=folder) as pool,
        pytest.raises(tightship.CapacityError, match="max_arena"),
    ):
        tightship.load(dense()[0], shapes=SHAPES, arena_pool=pool)


CHILD = """
import sys
import numpy as np
import tightship
from tests.small_models import dense
from tightship.resource import SharedArenaPool

def rows(count):
    return np.random.default_rng(count).standard_normal((count, 32), np.float32)

pool = SharedArenaPool(slots=int(sys.argv[2]), folder=sys.argv[1])
model = tightship.load(dense()[0], shapes={"x": (4, 32)}, arena_pool=pool)
print("ready", flush=True)
"""
STRESS = """
with tightship.load(dense()[0], shapes={"x": (4, 32)}) as own:
    wanted = {count: own(rows(count)).copy() for count in (3, 50, 700, 2000)}
sys.stdin.readline()
random = np.random.default_rng(int(sys.argv[3]))
for count in random.choice(list(wanted), 150):
    assert model(rows(int(count))).tobytes() == wanted[int(count)].tobytes()
print("right")
"""
TURN = """
for line in sys.stdin:
    model(rows(int(line)))
    print("done", flush=True)
"""
ENDLESS = """
while True:
    model(rows(2000))
"""


def child(folder, script, *arguments):
    """A process that has loaded a model over the pool of a folder."""
    command = [sys.executable, "-c", CHILD + script, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_eight_processes_over_two_slots_have_the_same_results(folder):
    children = [child(folder, STRESS, 2, number) for number in range(8)]
    for each in children:
        assert each.stdout.readline() == "ready\n"
    with SharedArenaPool(slots=2, folder=folder) as pool:
        assert [each.communicate("\n", PATIENCE_S)[0] for each in children] == ["right\n"] * 8
        plan = tightship.plan(dense()[0], shapes={"x": (2000, 32)})
        arena = -(-plan.arena_bytes // PAGE) * PAGE
        assert pool.size_bytes <= PAGE + 2 * arena
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_four_processes_that_alternate_have_one_arena(folder):
    children = []
    for _ in range(4):
        children.append(child(folder, TURN, 4))
        assert children[-1].stdout.readline() == "ready\n"
    for _ in range(3):
        for each in children:
            each.stdin.write("1500\n")
            each.stdin.flush()
            assert each.stdout.readline() == "done\n"
    plan = tightship.plan(dense()[0], shapes={"x": (1500, 32)})
    with SharedArenaPool(slots=4, folder=folder) as pool:
        assert pool.size_bytes == PAGE + -(-plan.arena_bytes // PAGE) * PAGE
    for each in children:
        each.communicate()


@pytest.mark.slow
def test_a_process_that_is_killed_in_a_run_delays_no_other(folder):
    with (
        SharedArenaPool(slots=1, folder=folder) as pool,
        tightship.load(dense()[0], shapes=SHAPES, arena_pool=pool) as model,
    ):
        wanted = model(rows(700)).copy()
        for _ in range(3):
            runner = child(folder, ENDLESS, 1)
            runner.stdout.readline()
            model(rows(700))
            runner.send_signal(signal.SIGKILL)
            result = model.run({"x": rows(700)}, timeout_s=PATIENCE_S)
            np.testing.assert_array_equal(result["y"], wanted)
            runner.communicate()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_runs_in_slots_of_its_own(model):
    wanted = model(rows(50)).copy()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            model(rows(60))

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work)
        pool = model._programs._pool.pool
        forked = os.fork()
        if forked == 0:
            slot = None
            while slot is None:
                slot = pool.take(PAGE)
            slot.mapping.array()[:] = 1
            pool.give(slot)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
        stop.set()
        running.result(PATIENCE_S)
    np.testing.assert_array_equal(model(rows(50)), wanted)
