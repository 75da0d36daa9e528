import numpy as np
import pytest
from benchmarks.baselines.simulated import (
    KIB,
    MIB,
    SIMULATED,
    BestFitCoalescing,
    Caching,
    Expandable,
    Growing,
    divided,
    main,
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


@pytest.mark.parametrize(
    ("size_bytes", "segment_bytes"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB + 1, 12 * MIB),
    ],
)
def test_a_size_has_the_segment_that_pytorch_gives_it(size_bytes, segment_bytes):
    allocator = Caching()
    for _ in range(3):
        heap, start, taken_bytes = allocator.allocate(size_bytes)
        heap.give_back(start, taken_bytes)
        assert allocator.held_bytes == segment_bytes


def test_the_rest_of_a_large_segment_serves_only_where_it_is_above_a_mebibyte():
    allocator = Caching()
    assert [allocator.allocate(9 * MIB)[2] for _ in range(2)] == [9 * MIB] * 2
    assert allocator.held_bytes == 20 * MIB
    allocator.allocate(3 * MIB)
    assert allocator.held_bytes == 40 * MIB


@pytest.mark.parametrize(("asked", "given"), [(19 * MIB, 20 * MIB), (19 * MIB - 512,) * 2])
def test_a_block_whose_rest_is_too_small_to_keep_is_given_whole(asked, given):
    allocator = Caching()
    heap, start, taken_bytes = allocator.allocate(20 * MIB)
    heap.give_back(start, taken_bytes)
    assert allocator.allocate(asked)[2] == given


def test_small_blocks_share_a_segment_in_units_of_512():
    allocator = Caching()
    starts = [allocator.allocate(1)[1] for _ in range(4096)]
    assert allocator.held_bytes == 2 * MIB
    assert {start % 512 for start in starts} == {0}
    allocator.allocate(1)
    assert allocator.held_bytes == 4 * MIB


def test_the_smallest_block_that_is_large_enough_is_taken():
    allocator = Caching()
    large, _, small, _ = (allocator.allocate(size * KIB) for size in (100, 1, 50, 1))
    for heap, start, taken_bytes in (large, small):
        heap.give_back(start, taken_bytes)
    assert allocator.allocate(40 * KIB)[1] == small[1]
    assert allocator.allocate(60 * KIB)[1] == large[1]


def test_segments_stay_apart():
    allocator = Caching()
    for heap, start, taken_bytes in [allocator.allocate(12 * MIB) for _ in range(4)]:
        heap.give_back(start, taken_bytes)
    allocator.allocate(24 * MIB)
    assert allocator.held_bytes == 72 * MIB


def test_traces_are_simulated_from_the_shell(monkeypatch, capsys, tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text("[[1, 5000], [2, 100], [-1, 5000], [3, 4000], [-2, 100], [-3, 4000]]")
    monkeypatch.setattr("sys.argv", ["simulated", str(trace)])
    main()
    held = {line.split("  ")[1]: line.split()[-2] for line in capsys.readouterr().out.splitlines()}
    assert list(held) == list(SIMULATED)
    assert held["PyTorch"] == held["PyTorch, expandable segments"] == f"{2 * MIB:,}"


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
