import numpy as np
import pytest
from benchmarks.simulated import (
    KIB,
    MIB,
    SIMULATED,
    BestFitCoalescing,
    Expandable,
    Growing,
    divided,
    peak_held_bytes,
)
from hypothesis import given
from hypothesis import strategies as st

ALLOCATORS = {**SIMULATED, "growing": Growing}


@st.composite
def traces(draw):
    """Slots and bytes: blocks that come and go."""
    rows, live = [], []
    for slot in range(draw(st.integers(1, 40))):
        rows.append((slot, draw(st.integers(1, 40 * MIB))))
        live.append(slot)
        while live and draw(st.booleans()):
            rows.append((~live.pop(draw(st.integers(0, len(live) - 1))), 0))
    slots, sizes = zip(*rows, strict=True)
    return np.array(slots), np.array(sizes)


def peak_live_bytes(columns):
    live, peak_bytes = {}, 0
    for slot, size_bytes in zip(*columns, strict=True):
        if slot >= 0:
            live[slot] = size_bytes
        else:
            del live[~slot]
        peak_bytes = max(peak_bytes, sum(live.values()))
    return peak_bytes


@pytest.mark.parametrize("name", ALLOCATORS)
@given(columns=traces())
def test_what_is_live_is_held(name, columns):
    assert peak_held_bytes(ALLOCATORS[name](), columns) >= peak_live_bytes(columns)


@pytest.mark.parametrize("name", ALLOCATORS)
@given(columns=traces())
def test_what_all_came_back_serves_the_same_again(name, columns):
    live = {~slot for slot in columns[0] if slot < 0} ^ {slot for slot in columns[0] if slot >= 0}
    left = ~np.array(sorted(live), int)
    once = np.concatenate([columns[0], left]), np.concatenate([columns[1], np.zeros_like(left)])
    again = tuple(np.tile(column, 2) for column in once)
    first_bytes = peak_held_bytes(ALLOCATORS[name](), once)
    assert peak_held_bytes(ALLOCATORS[name](), again) <= 2 * first_bytes


def test_expandable_ranges_grow_by_pages_of_their_own():
    allocator = Expandable()
    allocator.allocate(1)
    assert allocator.held_bytes == 2 * MIB
    allocator.allocate(MIB + 1)
    assert allocator.held_bytes == 22 * MIB
    allocator.allocate(30 * MIB)
    assert allocator.held_bytes == 42 * MIB


def test_the_end_of_an_expandable_range_is_taken_last():
    allocator = Expandable()
    heap, start, size_bytes = allocator.allocate(12 * MIB)
    allocator.allocate(3 * MIB)
    heap.give_back(start, size_bytes)
    assert allocator.allocate(4 * MIB)[1] == start
    assert allocator.held_bytes == 20 * MIB


def test_regions_double_or_are_as_requested():
    doubling, exact = BestFitCoalescing(doubles=True), BestFitCoalescing(doubles=False)
    for size_bytes in (MIB, 100, 3 * MIB):
        doubling.allocate(size_bytes)
        exact.allocate(size_bytes)
    assert doubling.held_bytes == (1 + 2 + 4) * MIB
    assert exact.held_bytes == 4 * MIB + 256


def test_an_arena_cuts_a_block_only_where_much_is_left():
    allocator = BestFitCoalescing(doubles=False)
    allocator.heap.give_back(*allocator.allocate(1000 * KIB)[1:])
    assert allocator.allocate(501 * KIB)[2] == 1000 * KIB
    allocator.allocate(1)
    assert allocator.held_bytes == 1000 * KIB + 256


def test_a_trace_is_divided_by_size():
    columns = np.array([0, 1, ~0, 0, ~1, ~0]), np.array([10, 20, 0, 30, 0, 0])
    small, large = divided(columns, 10)
    assert small[0].tolist() == [0, ~0]
    assert large[0].tolist() == [1, 0, ~1, ~0]
    assert large[1].tolist() == [20, 30, 0, 0]
