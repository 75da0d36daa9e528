import csv
import gc
import os
import threading
import weakref

import pytest

from tests.at_once import at_once
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import (
    AlignedResource,
    BinningResource,
    CallbackResource,
    FailingResource,
    FailureCallbackResource,
    FreeListResource,
    HostResource,
    LimitingResource,
    RegionResource,
    SlabResource,
    StatisticsResource,
    TracingResource,
    TrackingResource,
    counted,
    pool,
)


def test_a_limit_counts_what_is_asked_for_and_says_what_is_left():
    limited = LimitingResource(HostResource(), 1000)
    address = limited.allocate(900)
    with pytest.raises(
        OutOfMemoryError, match="900 of the limit of 1000 bytes are in use"
    ) as error:
        limited.allocate(101)
    assert error.value.available_bytes == 100
    second = limited.allocate(100)
    assert limited.current_bytes == 1000
    limited.deallocate(address, 900)
    limited.deallocate(second, 100)
    assert limited.current_bytes == 0


def test_a_limit_counts_nothing_for_what_its_upstream_refuses():
    limited = LimitingResource(RegionResource(bytearray(64)), 1000)
    with pytest.raises(OutOfMemoryError, match="the region has 64 bytes"):
        limited.allocate(65)
    assert limited.current_bytes == 0


def test_a_limit_holds_among_threads():
    limited = LimitingResource(FreeListResource(HostResource()), 4096)
    over = []

    def work():
        for _ in range(500):
            try:
                address = limited.allocate(1024)
            except OutOfMemoryError:
                continue
            over.append(limited.current_bytes > 4096)
            limited.deallocate(address, 1024)

    at_once(lambda _: work(), range(6))
    assert over
    assert not any(over)
    assert limited.current_bytes == 0


def test_counters_are_of_what_is_asked_for():
    resource = StatisticsResource(HostResource())
    first, second = resource.allocate(100), resource.allocate(200)
    resource.deallocate(first, 100)
    now = resource.counters()
    assert (now.current_bytes, now.peak_bytes, now.total_bytes) == (200, 300, 300)
    assert (now.current_count, now.peak_count, now.total_count) == (1, 2, 2)
    with pytest.raises(InputError):
        resource.deallocate(first, 100)
    assert resource.counters().current_bytes == 200
    resource.deallocate(second, 200)


def test_a_scope_begins_at_zero_and_adds_to_the_one_around_it():
    resource = StatisticsResource(HostResource())
    older = resource.allocate(1000)
    with counted(resource) as outer:
        kept = resource.allocate(10)
        with counted(resource) as inner:
            resource.deallocate(resource.allocate(500), 500)
            resource.deallocate(older, 1000)
            assert inner().peak_bytes == 500
        assert inner().current_bytes == -1000
        assert outer().current_bytes == -990
    assert (outer().peak_bytes, outer().total_bytes) == (510, 510)
    assert resource.counters().peak_bytes == 1510
    assert resource.counters().current_bytes == 10
    resource.deallocate(kept, 10)


def test_a_scope_that_ends_adds_its_peaks_to_what_the_outer_one_had_then():
    resource = StatisticsResource(HostResource())
    first = resource.allocate(1000)
    resource.push()
    blocks = [resource.allocate(100) for _ in range(3)]
    for block in blocks:
        resource.deallocate(block, 100)
    resource.pop(1)
    now = resource.counters()
    assert (now.peak_count, now.peak_bytes) == (4, 1300)
    assert (now.current_count, now.total_count, now.total_bytes) == (1, 4, 1300)
    resource.deallocate(first, 1000)


def test_only_the_innermost_scope_can_end():
    resource = StatisticsResource(HostResource())
    with pytest.raises(InputError, match="not that of the innermost of 0 scopes"):
        resource.pop(0)
    depth = resource.push()
    resource.push()
    with pytest.raises(InputError, match=r"`depth` \(= 1\).*of 2 scopes"):
        resource.pop(depth)


def test_a_trace_has_a_line_for_each_call(tmp_path):
    path = tmp_path / "log.csv"
    resource = TracingResource(LimitingResource(HostResource(), 1000), str(path))
    address = resource.allocate(300)
    with pytest.raises(OutOfMemoryError):
        resource.allocate(1001)
    resource.deallocate(address, 300)
    resource.flush()
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]
    assert [(row["Action"], int(row["Pointer"], 16), int(row["Size"])) for row in rows] == [
        ("allocate", address, 300),
        ("allocate failure", 0, 1001),
        ("free", address, 300),
    ]
    assert {row["Thread"] for row in rows} == {str(threading.get_native_id())}
    assert len(rows[0]["Time"]) == len("10:59:53.123456")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_writes_no_line_twice(tmp_path):
    path = tmp_path / "log.csv"
    resource = TracingResource(HostResource(), str(path))
    address = resource.allocate(300)
    child = os.fork()
    if child == 0:
        resource.flush()
        os._exit(0)
    os.waitpid(child, 0)
    resource.deallocate(address, 300)
    resource.flush()
    assert len(path.read_text().splitlines()) == 3


def test_a_log_that_cannot_be_written_is_refused_with_its_path(tmp_path):
    with pytest.raises(InputError, match=r"nowhere/log\.csv` cannot be written: No such file"):
        TracingResource(HostResource(), str(tmp_path / "nowhere" / "log.csv"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_lines_that_are_lost_are_reported():
    resource = TracingResource(HostResource(), "/dev/full")
    with pytest.raises(InputError, match="`/dev/full` has lost lines"):
        resource.flush()


def test_tracking_knows_who_asked_for_what_is_out():
    resource = TrackingResource(HostResource(), stacks=True)
    first, second = resource.allocate(100, 64), resource.allocate(7)
    older, newer = resource.live()
    assert (older.address, older.size_bytes, older.alignment, older.number) == (first, 100, 64, 1)
    assert (newer.address, newer.size_bytes) == (second, 7)
    assert "test_tracking_knows_who_asked_for_what_is_out" in older.origin.splitlines()[0]
    assert __file__ in older.origin
    resource.deallocate(first, 100, 64)
    assert [block.number for block in resource.live()] == [2]
    assert resource.live_bytes == 7
    resource.deallocate(second, 7)


def test_without_stacks_a_block_has_no_origin():
    resource = TrackingResource(HostResource())
    address = resource.allocate(1)
    assert resource.live()[0].origin == ""
    resource.deallocate(address, 1)


@pytest.mark.parametrize("count", [1, 3])
def test_the_allocations_that_are_to_fail_do_and_no_others(count):
    resource = FailingResource(HostResource(), 2, count)
    refused = []
    for number in range(1, 7):
        try:
            resource.deallocate(resource.allocate(10), 10)
        except OutOfMemoryError as error:
            refused.append((number, f"allocation {number} is one that was to fail" in str(error)))
    assert refused == [(number, True) for number in range(2, 2 + count)]
    assert resource.allocation_count == 6


def test_a_callback_can_make_room_and_ask_again():
    limited = LimitingResource(HostResource(), 100)
    held = [limited.allocate(80)]
    asked = []

    def make_room(size_bytes):
        asked.append(size_bytes)
        if not held:
            return False
        limited.deallocate(held.pop(), 80)
        return True

    resource = FailureCallbackResource(limited, make_room)
    address = resource.allocate(50)
    with pytest.raises(OutOfMemoryError, match="limit of 100"):
        resource.allocate(51)
    assert asked == [50, 51]
    resource.deallocate(address, 50)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_callback_that_raises_lets_the_refusal_stand():
    def callback(size_bytes):
        raise KeyError(size_bytes)

    resource = FailureCallbackResource(LimitingResource(HostResource(), 1), callback)
    with pytest.raises(OutOfMemoryError, match="limit of 1 bytes"):
        resource.allocate(2)


def test_python_functions_can_be_a_resource():
    calls = []
    host = HostResource()

    def allocate(size_bytes, alignment):
        calls.append(("allocate", size_bytes, alignment))
        return host.allocate(size_bytes, alignment)

    def deallocate(address, size_bytes, alignment):
        calls.append(("deallocate", size_bytes, alignment))
        host.deallocate(address, size_bytes, alignment)

    resource = CallbackResource(allocate, deallocate)
    resource.deallocate(resource.allocate(100, 64), 100, 64)
    assert calls == [("allocate", 100, 64), ("deallocate", 100, 64)]
    assert host.current_bytes == 0


def test_what_a_function_raises_is_a_refusal_that_names_it():
    def allocate(*_):
        raise ValueError("no more today")

    resource = CallbackResource(allocate, lambda *_: None)
    with pytest.raises(OutOfMemoryError, match="raised last ValueError: no more today"):
        resource.allocate(1)


@pytest.mark.parametrize("returned", [0, None, "address", -1, 8])
def test_a_function_that_gives_no_aligned_address_refuses(returned):
    taken = []
    resource = CallbackResource(lambda *_: returned, lambda *block: taken.append(block))
    with pytest.raises(OutOfMemoryError, match="gave no memory"):
        resource.allocate(10, 16)
    assert taken == ([(8, 10, 16)] if returned == 8 else [])


def test_large_blocks_are_aligned_and_small_ones_as_they_are_asked_for():
    resource = AlignedResource(pool(HostResource()), 4096, 256)
    addresses = [resource.allocate(256) for _ in range(4)]
    assert {address % 4096 for address in addresses} == {0}
    small = [resource.allocate(255) for _ in range(4)]
    assert {address % 4096 for address in small} != {0}


def test_bins_serve_the_sizes_they_have():
    small, middle, rest = SlabResource(HostResource(), 4096, 64), HostResource(), HostResource()
    resource = BinningResource(rest, [(64, small), (1000, middle)])
    cases = [(64, 8, small), (65, 8, middle), (1000, 8, middle), (64, 128, middle), (1001, 8, rest)]
    for size, alignment, part in cases:
        address = resource.allocate(size, alignment)
        assert part.owns(address)
        assert resource.owns(address)
        resource.deallocate(address, size, alignment)
        assert part.statistics().current_count == 0


def test_a_pool_takes_from_upstream_once_and_no_more_than_its_maximum():
    host = HostResource()
    pooled = pool(host, initial_bytes=4 << 20, max_bytes=5 << 20)
    assert host.current_bytes == 4 << 20
    address = pooled.allocate(4 << 20)
    assert host.allocation_count == 1
    with pytest.raises(OutOfMemoryError):
        pooled.allocate((1 << 20) + 4096)
    pooled.deallocate(address, 4 << 20)
    assert pooled.trim() == 4 << 20
    assert host.current_bytes == 0


ILLEGAL = {
    "a limit of nothing": (lambda: LimitingResource(HostResource(), 0), "`limit_bytes` (= 0)"),
    "a pool that starts above its maximum": (
        lambda: pool(HostResource(), initial_bytes=2, max_bytes=1),
        "`initial_bytes` (= 2) must not exceed `max_bytes` (= 1)",
    ),
    "chunks above a limit": (
        lambda: FreeListResource(LimitingResource(HostResource(), 4096), chunk_bytes=4097),
        "`chunk_bytes` (= 4097) is more than `upstream` ever gives: 4096 bytes",
    ),
    "chunks above a slab's blocks, through adaptors": (
        lambda: FreeListResource(
            StatisticsResource(SlabResource(HostResource(), 4096, 64)), chunk_bytes=65
        ),
        "`chunk_bytes` (= 65) is more than `upstream` ever gives: 64 bytes",
    ),
    "an alignment that a slab has not": (
        lambda: AlignedResource(SlabResource(HostResource(), 4096, 64), 128),
        "`alignment` (= 128) is coarser than `upstream` ever gives: 64",
    ),
    "bins that do not rise": (
        lambda: BinningResource(HostResource(), [(64, HostResource()), (64, HostResource())]),
        "The bin of 64 bytes must come before that of 64",
    ),
    "a bin of larger blocks than its resource has": (
        lambda: BinningResource(HostResource(), [(65, SlabResource(HostResource(), 4096, 64))]),
        "The bin of 65 bytes is over a resource that never gives more than 64",
    ),
    "a failure before the first": (lambda: FailingResource(HostResource(), 0), "`first` (= 0)"),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_an_illegal_stack_is_refused_when_it_is_built(case):
    make, words = ILLEGAL[case]
    with pytest.raises(InputError) as error:
        make()
    assert words in str(error.value)


def test_one_resource_in_two_bins_is_refused():
    host = HostResource()
    with pytest.raises(InputError, match="has the resource of another bin, or the upstream"):
        BinningResource(host, [(64, host)])


class Referrer:
    """Object that functions refer to, and that refers to a resource."""


def cycle(depth):
    referrer = Referrer()
    resource = FailureCallbackResource(
        CallbackResource(lambda *_: referrer.resource, lambda *_: None), lambda _: referrer.resource
    )
    for _ in range(depth):
        resource = StatisticsResource(resource)
    referrer.resource = resource
    return weakref.ref(referrer)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_function_that_refers_to_its_resource_goes_with_it(depth):
    seen = cycle(depth)
    gc.collect()
    assert seen() is None
