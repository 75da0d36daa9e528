"""Lifetimes, pools and the managers of a primitive's temporaries."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_primitive_cache import UNBOUNDED, cache_of
from tightship import _core
from tightship._core import (
    Attributes,
    BlobLifetimeManager,
    FailingResource,
    MemoryDesc,
    MemoryManager,
    OffsetLifetimeManager,
    PoolManager,
    PrimitiveDesc,
)
from tightship.engine.library import open_library
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import HostResource

ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
KINDS = (BlobLifetimeManager, OffsetLifetimeManager)


def alone(size_bytes):
    """The lifetimes of one object."""
    lifetimes = OffsetLifetimeManager()
    lifetimes.end_lifetime(lifetimes.start_lifetime(), size_bytes)
    return lifetimes


def manager_of(size_bytes, pools, *, is_cached=True):
    return MemoryManager(alone(size_bytes), pools, is_cached=is_cached)


HOST = HostResource()
SIZES = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 12), st.integers(1, 12)), max_size=9
)


def spanned(rows, lifetimes):
    """Objects of (size, start, length) started and ended in the order of time."""
    numbers = {}
    for now in range(25):
        for index, (size, start, length) in enumerate(rows):
            if start + length == now:
                lifetimes.end_lifetime(numbers[index], size)
        for index, (_, start, _) in enumerate(rows):
            if start == now:
                numbers[index] = lifetimes.start_lifetime()
    return numbers


def live_bytes(rows):
    """The most bytes alive at once."""
    return max(
        (sum(size for size, start, length in rows if start <= now < start + length)
         for now in range(25)), default=0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@given(SIZES)
def test_objects_that_live_together_lie_apart(kind, rows):
    lifetimes = kind()
    numbers = spanned(rows, lifetimes)
    assert lifetimes.are_all_finalized
    held = MemoryManager(lifetimes, PoolManager(0)).create_resource(HOST)
    places = [(held.address(numbers[index]), *row) for index, row in enumerate(rows)]
    for index, (address, size, start, length) in enumerate(places):
        assert address % 64 == 0
        ctypes.memset(address, index, size)
        for other, other_size, other_start, other_length in places[:index]:
            if start < other_start + other_length and other_start < start + length:
                assert address + size <= other or other + other_size <= address
    assert live_bytes(rows) <= lifetimes.size_bytes
    assert lifetimes.size_bytes <= sum(size + 64 for size, _, _ in rows)


def test_objects_that_never_meet_share_their_bytes():
    for kind in KINDS:
        lifetimes = kind()
        for size in (100, 300, 200):
            lifetimes.end_lifetime(lifetimes.start_lifetime(), size)
        assert lifetimes.size_bytes == 300


@pytest.mark.parametrize("kind", KINDS)
def test_lifetimes_without_an_end_are_refused(kind):
    lifetimes = kind()
    lifetimes.start_lifetime()
    manager = MemoryManager(lifetimes, PoolManager(0))
    for call in (manager.create_resource, lambda host: manager.reserve_pools(host, 1),
                 lambda host: manager.populate(host, 1)):  # fmt: skip
        with pytest.raises(InputError, match="1 of 1 objects have no end"):
            call(HOST)
    with pytest.raises(InputError, match="Object 3 is not alive"):
        lifetimes.end_lifetime(3, 1)
    lifetimes.end_lifetime(0, 10)
    with pytest.raises(InputError, match="Object 0 is not alive"):
        lifetimes.end_lifetime(0, 10)
    assert manager.create_resource(HOST).is_held


def test_no_more_pools_are_returned_than_are_reserved():
    pools = PoolManager(UNBOUNDED)
    manager = manager_of(100, pools)
    manager.reserve_pools(HOST, 2)
    used = manager.create_resource(HOST)
    with pytest.raises(InputError, match="Cannot unreserve 2 pools: 1 are"):
        manager.unreserve_pools(2)
    assert manager.reserved_count == 1
    manager.destroy_resource(used)
    manager.unreserve_pools(2)
    assert pools.statistics().free_count == 2


def test_a_manager_returns_pools_of_its_own_only():
    pools = PoolManager(UNBOUNDED)
    first, second = manager_of(100, pools), manager_of(100, pools)
    used = first.create_resource(HOST)
    with pytest.raises(InputError, match="Cannot unreserve 1 pools: 0 are"):
        second.unreserve_pools(1)
    with pytest.raises(InputError, match="not one that this manager created"):
        second.destroy_resource(used)
    identity = used.identity
    first.destroy_resource(used)
    with pytest.raises(InputError, match="not one that this manager created"):
        first.destroy_resource(used)
    assert second.create_resource(HOST).identity == identity


def test_a_pool_that_is_too_small_makes_way_for_a_larger_one():
    pools = PoolManager(UNBOUNDED)
    small, large = manager_of(100, pools), manager_of(10_000, pools)
    first = small.create_resource(HOST).identity
    held = large.create_resource(HOST)
    ctypes.memset(held.address(), 1, 10_000)
    assert held.identity != first
    del held
    assert (pools.statistics().free_count, pools.statistics().free_bytes) == (1, 10_000)
    assert small.create_resource(HOST).is_held
    assert pools.statistics().created == 2


def test_a_pool_serves_its_own_resource_only():
    pools, other = PoolManager(UNBOUNDED), HostResource()
    manager = manager_of(100, pools)
    first = manager.create_resource(HOST).identity
    held = manager.create_resource(other)
    assert held.identity != first
    assert other.owns(held.address())


@pytest.mark.parametrize(("budget", "is_cached"), [(0, True), (UNBOUNDED, False)])
def test_without_a_budget_or_on_demand_memory_is_freed_at_once(budget, is_cached):
    host, pools = HostResource(), PoolManager(budget)
    manager = manager_of(5000, pools, is_cached=is_cached)
    held = manager.create_resource(host)
    assert host.current_bytes >= 5000
    manager.destroy_resource(held)
    assert host.current_bytes == pools.statistics().free_bytes == 0


def test_the_pool_that_was_free_for_longest_is_trimmed_first():
    pools = PoolManager(3000)
    held = [manager_of(size, pools).create_resource(HOST) for size in (1000, 2000, 1500)]
    identities = [each.identity for each in held]
    while held:
        held.pop(0)
    assert pools.statistics().free_bytes == 1500
    assert manager_of(1, pools).create_resource(HOST).identity == identities[2]
    assert pools.trim() == 1500
    pools.budget_bytes = 5000
    assert pools.budget_bytes == 5000


def test_pools_are_made_beforehand_and_cleared():
    host, pools = HostResource(), PoolManager(UNBOUNDED)
    manager = manager_of(5000, pools)
    manager.populate(host, 3)
    assert (pools.statistics().free_count, host.allocation_count) == (3, 3)
    held = [manager.create_resource(host) for _ in range(3)]
    assert host.allocation_count == 3
    assert len({each.identity for each in held}) == 3
    with pytest.raises(InputError, match="3 of 3 are reserved"):
        manager.clear()
    held.clear()
    manager.clear()
    assert host.current_bytes == pools.statistics().free_count == 0


def test_a_refusal_leaves_everything_as_it_was_but_free_pools():
    failing, pools = FailingResource(HostResource(), 2, 2), PoolManager(UNBOUNDED)
    small, large = manager_of(100, pools), manager_of(10_000, pools)
    assert small.create_resource(failing).is_held
    with pytest.raises(OutOfMemoryError):
        large.create_resource(failing)
    assert pools.statistics().free_count + pools.statistics().reserved_count == 0
    with pytest.raises(OutOfMemoryError):
        large.reserve_pools(failing, 1)
    assert large.create_resource(failing).is_held


def test_free_pools_are_given_back_where_memory_is_short():
    failing, pools = FailingResource(HostResource(), 1), PoolManager(UNBOUNDED)
    manager_of(100, pools).populate(HOST, 2)
    assert manager_of(200, pools).create_resource(failing).is_held
    assert pools.statistics().trimmed == 2


ACTIONS = st.lists(st.tuples(st.sampled_from(["make", "end", "budget"]), st.integers(0, 4)),
                   max_size=30)  # fmt: skip


@given(ACTIONS)
def test_pools_are_free_or_reserved_and_add_up(actions):
    host, pools, held = HostResource(), PoolManager(4000), []
    for action, number in actions:
        if action == "make":
            held.append(manager_of(700 * (number + 1), pools).create_resource(host))
        elif action == "end" and number < len(held):
            del held[number]
        elif action == "budget":
            pools.budget_bytes = 1500 * number
        found = pools.statistics()
        assert found.reserved_count == len(held) == len({each.identity for each in held})
        assert found.free_bytes <= pools.budget_bytes
        assert found.created - found.trimmed == found.free_count + found.reserved_count
        assert (host.current_bytes > 0) == (found.free_bytes + found.reserved_bytes > 0)
        assert found.peak_bytes >= found.free_bytes + found.reserved_bytes


def normalization(rows):
    """A primitive whose scratch grows with its rows."""
    open_library()
    desc = MemoryDesc([rows, 16])
    return PrimitiveDesc.layer_normalization(desc, desc, 1e-5, True, Attributes())


@ONEDNN
def test_eviction_returns_what_is_reserved_and_frees_what_exceeds_the_budget():
    host, cache = HostResource(), cache_of(1, budget_bytes=0)
    primitive = cache.obtain(normalization(1000))
    assert primitive.scratch_bytes > 0
    primitive.memory.reserve_pools(host, 2)
    used = primitive.memory.create_resource(host)
    del primitive
    assert cache.pools.statistics().reserved_count == 2
    cache.obtain(normalization(10))
    assert cache.pools.statistics().reserved_count == 1
    del used
    assert host.current_bytes == cache.pools.statistics().reserved_count == 0


@ONEDNN
@pytest.mark.parametrize("threads", [1, 3])
def test_a_full_cache_has_pools_for_its_threads_and_the_largest_primitive(threads):
    cache, host, largest = cache_of(1024), HostResource(), 0
    for rows in range(1, 1025):
        found = cache.obtain(normalization(rows))
        held = [found.memory.create_resource(host) for _ in range(threads)]
        largest = max(largest, found.scratch_bytes)
        del held
    assert cache.statistics().entries == cache.statistics().idle_entries + 1 == 1024
    pages = threads * -(-largest // 4096) * 4096
    assert cache.pools.statistics().peak_bytes <= threads * largest
    assert 0 < host.peak_bytes <= pages


def regions_of(*sizes, alignment=64, kind=BlobLifetimeManager):
    """The lifetimes of objects that are alive at once."""
    lifetimes = kind()
    numbers = [lifetimes.start_lifetime() for _ in sizes]
    for number, size in zip(numbers, sizes, strict=True):
        lifetimes.end_lifetime(number, size, alignment)
    return lifetimes


UNLIKE = (
    regions_of(5000),
    regions_of(700, 600, 500),
    regions_of(100, 100, 100, 100, 100, alignment=4096),
    regions_of(300, alignment=256, kind=OffsetLifetimeManager),
    regions_of(9000, 10),
)


@pytest.mark.parametrize("at_once", [1, 2])
def test_layouts_of_any_kind_share_their_pools(at_once):
    host, pools = HostResource(), PoolManager(UNBOUNDED)
    managers = [MemoryManager(lifetimes, pools) for lifetimes in UNLIKE]

    def round_of_all():
        for manager in managers:
            held = [manager.create_resource(host) for _ in range(at_once)]
            assert held[0].address() % 64 == 0
            del held

    for _ in range(2):
        round_of_all()
    before = pools.statistics()
    for _ in range(40):
        round_of_all()
    after = pools.statistics()
    assert after.created == before.created
    assert after.reused - before.reused == 40 * len(managers) * at_once
    assert after.free_count == at_once
    largest = max(lifetimes.size_bytes for lifetimes in UNLIKE)
    assert after.peak_bytes <= at_once * largest


def test_objects_of_a_shared_pool_are_aligned_as_they_ask():
    pools = PoolManager(UNBOUNDED)
    for lifetimes, alignment in [(UNLIKE[0], 64), (UNLIKE[2], 4096), (UNLIKE[3], 256)] * 2:
        held = MemoryManager(lifetimes, pools).create_resource(HOST)
        assert held.address() % alignment == 0
        del held
    assert pools.statistics().created == 2


@pytest.mark.parametrize("count", [2, 5])
def test_reserving_is_all_or_nothing(count):
    failing, pools = FailingResource(HostResource(), count, 1000), PoolManager(UNBOUNDED)
    manager = manager_of(100, pools)
    with pytest.raises(OutOfMemoryError):
        manager.reserve_pools(failing, 5)
    assert manager.reserved_count == pools.statistics().reserved_count == 0
    with pytest.raises(InputError, match="0 are reserved"):
        manager.unreserve_pools(1)
    manager.reserve_pools(HOST, 2)
    assert manager.reserved_count == 2


def test_making_pools_beforehand_keeps_to_the_budget():
    host, pools = HostResource(), PoolManager(12_000)
    manager = manager_of(5000, pools)
    manager.populate(host, 10)
    assert (pools.statistics().free_count, host.allocation_count) == (2, 2)
    manager_of(4000, pools).populate(host, 10)
    assert pools.statistics().free_bytes <= 12_000
    assert host.current_bytes == 4096 * 3


def test_making_pools_beforehand_is_all_or_nothing():
    host = HostResource()
    pools = PoolManager(UNBOUNDED)
    with pytest.raises(OutOfMemoryError):
        manager_of(100, pools).populate(FailingResource(host, 3), 5)
    assert host.current_bytes == pools.statistics().created == 0


@ONEDNN
def test_eviction_leaves_no_more_than_the_budget():
    host, cache = HostResource(), cache_of(1, budget_bytes=6000)
    primitive = cache.obtain(normalization(1000))
    size = primitive.scratch_bytes
    primitive.memory.populate(host, 5)
    primitive.memory.reserve_pools(host, 3)
    del primitive
    cache.obtain(normalization(10))
    left = cache.pools.statistics()
    assert left.reserved_count == 0
    assert left.free_bytes <= 6000 < 3 * size
    assert host.current_bytes <= left.free_count * -(-size // 4096) * 4096
