import functools
import mmap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.engine.graphs import arena_of, built, graph_of, prepared, static_placement
from tests.models import filled
from tightship._core import CommittedRange
from tightship.engine.arenas.arena_pool import ArenaPool
from tightship.engine.program.program import Space
from tightship.engine.run.executable import PythonStep
from tightship.engine.run.limits import Limits
from tightship.errors import InputError, OutOfMemoryError

PATIENCE_S = 20


class Gate:
    """Makes ranges, refuses some of them, and counts."""

    def __init__(self, refused=()):
        self.refused = refused
        self.made = []

    def __call__(self, capacity_bytes):
        self.made.append(capacity_bytes)
        if len(self.made) in self.refused:
            raise MemoryError
        return CommittedRange(capacity_bytes)


@functools.cache
def residual():
    return built(static_placement("residual"))


@pytest.fixture
def executable():
    return residual()


@pytest.fixture
def threads():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def pooled(executable, capacity, make=CommittedRange):
    """A pool with an arena of a program."""
    pool = ArenaPool(capacity, make=make)
    pool.warm(executable)
    return pool


def reserve(pool, executable=None):
    """An arena, and a function that gives it back."""
    scope = pool.reserved(executable or residual(), Limits())
    return scope.__enter__(), lambda: scope.__exit__(None, None, None)


def waits(future):
    """Return whether a future stays unfinished for a while."""
    with pytest.raises(TimeoutError):
        future.result(timeout=0.05)
    return True


def test_one_arena_is_made_at_once_and_others_when_they_are_needed(executable):
    gate = Gate()
    pool = pooled(executable, 3, gate)
    assert len(gate.made) == 1
    (first, back), (second, second_back) = reserve(pool), reserve(pool)
    assert len(gate.made) == 2
    assert first.block.address != second.block.address
    back()
    third, third_back = reserve(pool)
    assert third is first
    assert len(gate.made) == 2
    second_back()
    third_back()


def test_a_run_waits_for_an_arena_where_all_are_reserved(executable, threads):
    pool = pooled(executable, 1)
    arena, back = reserve(pool)
    waiting = threads.submit(reserve, pool)
    assert waits(waiting)
    back()
    assert waiting.result(PATIENCE_S)[0] is arena


def test_every_waiting_run_gets_an_arena_and_none_shares_one(executable):
    gate = Gate()
    pool = pooled(executable, 2, gate)
    reserved, most, lock = set(), [], threading.Lock()

    def work():
        for _ in range(50):
            with pool.reserved(executable, Limits()) as arena:
                with lock:
                    assert arena not in reserved
                    reserved.add(arena)
                    most.append(len(reserved))
                with lock:
                    reserved.remove(arena)

    with ThreadPoolExecutor(6) as threads:
        for future in [threads.submit(work) for _ in range(6)]:
            future.result(PATIENCE_S)
    assert len(most) == 300
    assert max(most) <= 2
    assert len(gate.made) <= 2


def test_an_arena_comes_back_from_a_run_that_fails(executable):
    pool = pooled(executable, 1)
    with pytest.raises(ZeroDivisionError), pool.reserved(executable, Limits()):
        1 / 0  # noqa: B018
    arena, _ = reserve(pool)
    assert 0 <= arena.block.size_bytes - executable.arena_bytes < mmap.PAGESIZE


def test_an_arena_that_cannot_be_made_leaves_the_pool_usable(executable, threads):
    gate = Gate(refused=(2,))
    pool = pooled(executable, 2, gate)
    first, back = reserve(pool)
    with pytest.raises(OutOfMemoryError, match="for an arena") as refused:
        reserve(pool)
    assert refused.value.requested_bytes == executable.placement.arena_bytes
    second, second_back = reserve(pool)
    assert second is not first
    waiting = threads.submit(reserve, pool)
    assert waits(waiting)
    back()
    waiting.result(PATIENCE_S)[1]()
    second_back()
    pool.close()
    assert len(gate.made) == 3


def test_a_pool_whose_first_arena_is_refused_is_not_made(executable):
    with pytest.raises(OutOfMemoryError, match="an arena"):
        pooled(executable, 4, Gate(refused=(1,)))


def test_closing_waits_for_runs_and_refuses_those_that_wait(executable, threads):
    pool = pooled(executable, 1)
    arena, back = reserve(pool)
    waiting = threads.submit(reserve, pool)
    assert waits(waiting)
    closing = threads.submit(pool.close)
    with pytest.raises(InputError, match="closed"):
        waiting.result(PATIENCE_S)
    assert waits(closing)
    arena.block.array()[:] = 1
    back()
    closing.result(PATIENCE_S)
    assert pool.held_bytes == 0


def test_a_closed_pool_says_so(executable):
    pool = pooled(executable, 1)
    pool.close()
    pool.close()
    with pytest.raises(InputError, match="closed; load it again"):
        reserve(pool)


def test_arrays_of_an_arena_lie_where_the_plan_says():
    graph = graph_of(
        "g (int32[8] x) => (int32[8] y) { a = Neg (x) b = Add (a, w) c = Mul (a, b) y = Abs (c) }",
        w=(9 * filled(8)).astype(np.int32),
    )
    placement = prepared(graph, ("native",)).placement
    executable = built(placement)
    arena = arena_of(executable)
    seen = set()
    for segment in executable.segments:
        assert isinstance(segment, PythonStep)
        for operand in (*segment.step.reads, *segment.step.writes):
            if operand.space in (Space.ARENA, Space.WEIGHTS):
                array = arena.array(operand)
                assert array.ctypes.data == (
                    arena.block.address + placement.offset_of(operand)
                    if operand.space is Space.ARENA
                    else executable.weights[operand.slot].address
                )
                assert (array.shape, array.dtype) == ((8,), np.int32)
                assert array.flags.writeable == (operand.space is Space.ARENA)
                seen.add(operand.name)
    assert seen == {"a", "b", "c", "w"}


def test_scratch_of_a_python_step_is_apart_from_its_operands():
    graph = graph_of("g (double[6, 64] x) => (double[6, 64] y) "
                     "{ a = Neg (x) b = Softmax (a) y = Neg (b) }")  # fmt: skip
    executable = built(prepared(graph, ("native",)).placement)
    arena = arena_of(executable)
    sizes = {i: step.scratch_bytes for i, step in enumerate(executable.placement.lowered.steps)
             if step.scratch_bytes}  # fmt: skip
    assert sizes
    assert {index: room.nbytes for index, room in arena.scratch.items()} == sizes
    for segment in executable.segments:
        for operand in (*segment.step.reads, *segment.step.writes):
            if segment.index in sizes and operand.space is Space.ARENA:
                assert not np.shares_memory(arena.array(operand), arena.scratch[segment.index])


def test_an_arena_that_oneDNN_refuses_leaves_its_place(executable, monkeypatch):  # noqa: N802
    pool = pooled(executable, 2)
    _, back = reserve(pool)

    def refuse(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("tightship.engine.run.arena.Arena", refuse)
    with pytest.raises(RuntimeError):
        reserve(pool)
    monkeypatch.undo()
    reserve(pool)[1]()
    back()
    pool.close()
