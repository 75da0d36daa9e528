from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.engine.cache.program_eviction import (
    NEW_PROGRAMS,
    SEEN_KEYS,
    Program,
    ProgramEviction,
)


def key(number):
    return (("x", (number,)),)


def ask(eviction, number):
    """Request a program as a run does; return whether it had to be made."""
    if key(number) in eviction:
        assert eviction.take(key(number)) is not None
        return False
    eviction.book(key(number))
    goes = eviction.surplus(key(number))
    if goes is not None:
        eviction.release(goes)
    executable = SimpleNamespace(arena_bytes=10 * number)
    eviction.put(key(number), Program(executable, own_bytes=number))
    return True


@given(st.lists(st.integers(0, 400), max_size=60))
def test_shapes_that_come_once_leave_few_programs_and_those_that_come_again_stay(numbers):
    eviction = ProgramEviction()
    for number in numbers:
        ask(eviction, number)
    held = {p.own_bytes for p in eviction}
    often = {number for number in numbers if numbers.count(number) > 1}
    assert often <= held
    assert len(held - often) <= NEW_PROGRAMS


@given(st.lists(st.integers(0, 8), max_size=80))
def test_a_shape_is_made_twice_at_most_while_all_that_come_again_have_room(numbers):
    eviction = ProgramEviction()
    made = [number for number in numbers if ask(eviction, number)]
    assert all(made.count(number) <= 2 for number in made)


def test_a_program_that_a_run_has_is_not_evicted():
    eviction = ProgramEviction()
    for number in range(NEW_PROGRAMS):
        ask(eviction, number)
        next(p for p in eviction if p.own_bytes == number).pins = 1
    assert eviction.surplus(key(99)) is None
    assert eviction.idle() == []
    with pytest.raises(AssertionError):
        eviction.release(key(0))


def test_what_is_remembered_of_shapes_is_bounded():
    eviction = ProgramEviction()
    for number in range(SEEN_KEYS + 2 + NEW_PROGRAMS):
        ask(eviction, number)
    assert ask(eviction, 0)
    assert eviction.surplus(key(1)) is not None  # forgotten: as if it came for the first time
    assert eviction.surplus(key(5)) is None


def test_sums_are_of_programs_that_are_there():
    eviction = ProgramEviction()
    for number in (3, 3, 4):  # the first comes again and stays
        ask(eviction, number)
    eviction.book(key(5))
    assert (eviction.own_bytes, eviction.arena_bytes) == (7, 40)
    assert not eviction.is_still
    assert eviction.take(key(5)) is None
    eviction.cancel(key(5))
    assert eviction.is_still
    eviction.clear()
    assert list(eviction) == []


def test_code_that_programs_share_counts_once():
    eviction = ProgramEviction()
    executable = SimpleNamespace(arena_bytes=0)
    for number, code in enumerate(({1: 100, 2: 200}, {2: 200, 3: 300}, {})):
        eviction.put(key(number), Program(executable, 10, code))
    assert eviction.own_bytes == 3 * 10 + 100 + 200 + 300
    assert eviction.added_bytes(7, {3: 300, 4: 400}) == 7 + 400
    eviction.release(key(0))
    assert eviction.own_bytes == 2 * 10 + 200 + 300
