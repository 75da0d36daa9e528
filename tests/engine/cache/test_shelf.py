from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.engine.cache.shelf import NEW_PROGRAMS, SEEN_KEYS, Program, Shelf


def key(number):
    return (("x", (number,)),)


def ask(shelf, number):
    """As a run does that asks for shapes; whether the program had to be made."""
    if key(number) in shelf:
        assert shelf.take(key(number)) is not None
        return False
    shelf.book(key(number))
    goes = shelf.surplus(key(number))
    if goes is not None:
        shelf.let_go(goes)
    executable = SimpleNamespace(arena_bytes=10 * number)
    shelf.put(key(number), Program(executable, own_bytes=number))
    return True


@given(st.lists(st.integers(0, 400), max_size=60))
def test_shapes_that_come_once_leave_few_programs_and_those_that_come_again_stay(numbers):
    shelf = Shelf()
    for number in numbers:
        ask(shelf, number)
    held = {p.own_bytes for p in shelf}
    often = {number for number in numbers if numbers.count(number) > 1}
    assert often <= held
    assert len(held - often) <= NEW_PROGRAMS


@given(st.lists(st.integers(0, 8), max_size=80))
def test_a_shape_is_made_twice_at_most_while_all_that_come_again_have_room(numbers):
    shelf = Shelf()
    made = [number for number in numbers if ask(shelf, number)]
    assert all(made.count(number) <= 2 for number in made)


def test_a_program_that_a_run_has_is_not_let_go():
    shelf = Shelf()
    for number in range(NEW_PROGRAMS):
        ask(shelf, number)
        next(p for p in shelf if p.own_bytes == number).pins = 1
    assert shelf.surplus(key(99)) is None
    assert shelf.idle() == []
    with pytest.raises(AssertionError):
        shelf.let_go(key(0))


def test_what_is_remembered_of_shapes_is_bounded():
    shelf = Shelf()
    for number in range(SEEN_KEYS + 2 + NEW_PROGRAMS):
        ask(shelf, number)
    assert ask(shelf, 0)
    assert shelf.surplus(key(1)) is not None  # forgotten: as if it came for the first time
    assert shelf.surplus(key(5)) is None


def test_sums_are_of_programs_that_are_there():
    shelf = Shelf()
    ask(shelf, 3)
    ask(shelf, 4)
    shelf.book(key(5))
    assert (shelf.own_bytes, shelf.arena_bytes) == (7, 40)
    assert not shelf.is_still
    assert shelf.take(key(5)) is None
    shelf.cancel(key(5))
    assert shelf.is_still
    shelf.clear()
    assert list(shelf) == []


def test_code_that_programs_share_counts_once():
    shelf = Shelf()
    executable = SimpleNamespace(arena_bytes=0)
    for number, code in enumerate(({1: 100, 2: 200}, {2: 200, 3: 300}, {})):
        shelf.put(key(number), Program(executable, 10, code))
    assert shelf.own_bytes == 3 * 10 + 100 + 200 + 300
    assert shelf.added_bytes(7, {3: 300, 4: 400}) == 7 + 400
    shelf.let_go(key(0))
    assert shelf.own_bytes == 2 * 10 + 200 + 300
