import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tightship._core import CommittedRange
from tightship.engine.arenas.arena_pool import ArenaPool
from tightship.engine.arenas.retention import RUNS, Retention
from tightship.engine.run.limits import Limits
from tightship.errors import OutOfMemoryError

PATIENCE_S = 20
MIB = 1 << 20
SMALL, LARGE = 2 * MIB, 64 * MIB
SECOND_NS = 10**9


def program(arena_bytes):
    """Return the attributes of an executable that a pool reads."""
    return SimpleNamespace(arena_bytes=arena_bytes, native=None, segments=(), sized=None)


SMALL_PROGRAM, LARGE_PROGRAM = program(SMALL), program(LARGE)


class Clock:
    """Clock that a test advances."""

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        return self.now_ns


@pytest.fixture
def clock():
    return Clock()


def pool_of(clock, idle_s=2.0, **options):
    return ArenaPool(8, Retention(idle_s, SMALL), clock_ns=clock, **options)


def run(pool, executable, clock, took_ns=1000):
    with pool.reserved(executable, Limits()) as arena:
        assert arena.block.size_bytes >= executable.arena_bytes
        clock.now_ns += took_ns
    return arena


def test_a_larger_program_grows_the_only_arena_where_it_is(clock):
    pool = pool_of(clock)
    run(pool, LARGE_PROGRAM, clock)
    first = run(pool, SMALL_PROGRAM, clock)
    assert pool.held_bytes == LARGE
    clock.now_ns += 3 * SECOND_NS
    pool.sweep()
    assert pool.held_bytes == SMALL
    assert run(pool, LARGE_PROGRAM, clock).block.address == first.block.address
    assert run(pool, SMALL_PROGRAM, clock) is first
    assert pool.held_bytes == pool.peak_bytes == LARGE
    pool.close()


def test_growing_lengths_move_the_arena_a_few_times_only(clock):
    pool = pool_of(clock, idle_s=None)
    addresses = [run(pool, program(size), clock).block.address for size in range(MIB, LARGE, MIB)]
    assert len(set(addresses)) <= 7
    assert pool.held_bytes < LARGE
    assert pool.peak_bytes < LARGE


def test_memory_that_no_run_needs_goes_back_after_the_idle_time_and_not_before(clock):
    pool = pool_of(clock)
    run(pool, LARGE_PROGRAM, clock)
    clock.now_ns += 2 * SECOND_NS
    run(pool, SMALL_PROGRAM, clock, took_ns=0)
    assert pool.held_bytes == LARGE
    clock.now_ns += 1
    run(pool, SMALL_PROGRAM, clock, took_ns=0)
    assert pool.held_bytes == SMALL
    pool.close()


def test_steady_large_runs_among_small_ones_keep_their_memory(clock):
    made = []
    pool = pool_of(clock, make=lambda size: made.append(size) or CommittedRange(size))
    for turn in range(200):
        run(pool, SMALL_PROGRAM if turn % (RUNS + 2) else LARGE_PROGRAM, clock, MIB)
        assert pool.held_bytes == LARGE
    assert len(made) == 1
    pool.close()


def test_eight_runs_that_need_less_are_enough_after_long_ones(clock):
    pool = pool_of(clock)
    run(pool, LARGE_PROGRAM, clock, took_ns=SECOND_NS)
    held = []
    for _ in range(RUNS):
        run(pool, SMALL_PROGRAM, clock)
        held.append(pool.held_bytes)
    assert held == [LARGE] * (RUNS - 1) + [SMALL]
    pool.close()


def test_having_memory_again_takes_at_most_a_twentieth_of_the_time_of_runs(clock):
    pool = pool_of(clock)
    grown_bytes = 0
    for turn in range(2000):
        before = pool.held_bytes
        run(pool, SMALL_PROGRAM if turn % 10 else LARGE_PROGRAM, clock, took_ns=5 * MIB)
        grown_bytes += max(0, pool.peak_bytes - before) if turn % 10 == 0 else 0
    had_again_ns = grown_bytes / 5
    assert grown_bytes > 4 * LARGE
    assert had_again_ns <= clock.now_ns / 20
    pool.close()


def test_arenas_of_a_burst_go_back_and_one_stays(clock):
    pool = pool_of(clock)
    scopes = [pool.reserved(LARGE_PROGRAM, Limits()) for _ in range(4)]
    for scope in scopes:
        scope.__enter__()
    assert pool.held_bytes == pool.used_bytes == 4 * LARGE
    for scope in scopes:
        scope.__exit__(None, None, None)
    assert (pool.held_bytes, pool.used_bytes) == (4 * LARGE, 0)
    clock.now_ns += 3 * SECOND_NS
    assert pool.sweep() == 4 * LARGE - SMALL
    assert pool.held_bytes == SMALL
    pool.close()


def test_nothing_goes_back_on_its_own_without_an_idle_time(clock):
    pool = pool_of(clock, idle_s=None)
    run(pool, LARGE_PROGRAM, clock)
    clock.now_ns += 3600 * SECOND_NS
    for _ in range(3 * RUNS):
        run(pool, SMALL_PROGRAM, clock)
    assert pool.held_bytes == LARGE
    pool.release_unused()
    assert pool.held_bytes == 0
    assert run(pool, SMALL_PROGRAM, clock)


def test_what_runs_have_is_not_given_back(clock):
    pool = pool_of(clock)
    with pool.reserved(LARGE_PROGRAM, Limits()) as arena:
        clock.now_ns += 3600 * SECOND_NS
        assert pool.sweep() == 0
        pool.release_unused()
        arena.block.array()[-1] = 1
    pool.close()


def test_an_arena_that_cannot_grow_is_as_it_was(clock):
    class Stubborn:
        """A range that never grows beyond a size."""

        def __init__(self, capacity_bytes):
            self.range = CommittedRange(capacity_bytes)

        def __getattr__(self, name):
            return getattr(self.range, name)

        def resize(self, size_bytes):
            return size_bytes <= 3 * MIB and self.range.resize(size_bytes)

    pool = pool_of(clock, idle_s=None, make=Stubborn)
    run(pool, SMALL_PROGRAM, clock)
    run(pool, program(SMALL + 1), clock)
    with pytest.raises(OutOfMemoryError, match="for an arena"):
        run(pool, program(3 * MIB + 1), clock)
    assert run(pool, SMALL_PROGRAM, clock)
    pool.close()


@pytest.fixture
def watchers():
    """Function that returns the timers that watch pools of the test."""
    before = set(threading.enumerate())

    def found():
        timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
        return [each for each in timers if each not in before]

    return found


def join_all(watchers):
    """Join the watchers until none is left, those included that others start."""
    while found := watchers():
        found[0].join(PATIENCE_S)
        assert not found[0].is_alive()


def test_a_process_that_runs_no_more_comes_down_as_well(watchers):
    pool = ArenaPool(8, Retention(0.02, SMALL))
    with pool.reserved(LARGE_PROGRAM, Limits()):
        pass
    join_all(watchers)
    assert pool.held_bytes == SMALL
    pool.close()


def test_nothing_watches_what_cannot_go_back(clock, watchers):
    pool = ArenaPool(8, Retention(0.02, SMALL - 100), clock_ns=clock)
    run(pool, SMALL_PROGRAM, clock)
    assert watchers() == []
    run(pool, program(SMALL + MIB), clock)
    assert watchers() != []
    clock.now_ns += SECOND_NS
    join_all(watchers)
    run(pool, program(SMALL + 1), clock)
    assert SMALL < pool.held_bytes < SMALL + MIB
    assert watchers() == []
    pool.close()


def test_closing_leaves_no_thread(watchers):
    pool = ArenaPool(8, Retention(3600, SMALL))
    with pool.reserved(LARGE_PROGRAM, Limits()):
        pass
    assert len(watchers()) == 1
    pool.close()
    assert watchers() == []


def test_a_watched_pool_can_be_collected(watchers):
    pool = ArenaPool(8, Retention(3600, SMALL))
    with pool.reserved(LARGE_PROGRAM, Limits()):
        pass
    (thread,) = watchers()
    memory = pool._free[0].range
    del pool
    gc.collect()
    assert gc.get_referrers(memory) == []
    thread.function(*thread.args)  # as when the time has come
    thread.cancel()
    join_all(watchers)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_other_threads_run_in_is_not_the_childs(clock):
    pool = ArenaPool(1, Retention(None, 0), clock_ns=clock)
    with pool.reserved(LARGE_PROGRAM, Limits(), beside_bytes=7):
        child = os.fork()
        if child == 0:
            os._exit(pool.used_bytes != 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pool.used_bytes == LARGE


def is_watched_and_comes_down(pool, watchers):
    with pool._lock:  # which a watcher needs before it ends
        with pool.reserved(LARGE_PROGRAM, Limits()):
            pass
        is_watched = watchers() != []
    join_all(watchers)
    return is_watched and pool.held_bytes >= SMALL


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_runs_and_gives_back_on_its_own(watchers):
    pool = ArenaPool(8, Retention(0.02, SMALL))
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with pool.reserved(LARGE_PROGRAM, Limits()):
                pass

    with ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(work) for _ in range(2)]
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(not is_watched_and_comes_down(pool, watchers))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for future in futures:
            future.result(PATIENCE_S)
    pool.close()
