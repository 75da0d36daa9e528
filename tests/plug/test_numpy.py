import contextlib
import contextvars
import gc
import threading

import numpy as np
import pytest

from tests.at_once import at_once
from tests.plug.owners import Owner, owner_of_scope
from tightship.plug.numpy import use
from tightship.resource import (
    CallbackResource,
    CompositeResource,
    FailingResource,
    FreeListResource,
    GuardedResource,
    HostResource,
    LimitingResource,
    StatisticsResource,
    TrackingResource,
    counted,
)

HEAD_BYTES = 64


@pytest.fixture
def resource():
    return StatisticsResource(TrackingResource(CompositeResource(HostResource(), 64 << 20)))


def live(resource):
    return resource.counters().current_bytes


def address_of(array):
    return array.__array_interface__["data"][0]


def test_an_array_is_a_block_of_the_resource(resource):
    with use(resource):
        array = np.empty(1000, np.float32)
    assert resource.owns(address_of(array))
    assert address_of(array) % 64 == 0
    assert live(resource) == 4000 + HEAD_BYTES
    assert not resource.owns(address_of(np.empty(1000, np.float32)))
    del array
    assert live(resource) == 0


def test_an_array_outlives_its_scope_and_keeps_the_resource_alive():
    held = [StatisticsResource(CompositeResource(HostResource(), 1 << 20))]
    with use(held[0]):
        array = np.arange(10_000)
    held.clear()
    gc.collect()
    np.testing.assert_array_equal(array, range(10_000))
    assert array.sum() == 49_995_000


def test_a_resource_goes_with_its_last_array():
    host = HostResource()
    with use(CompositeResource(host, 1 << 20)):
        array = np.ones(100)
    gc.collect()
    assert host.current_bytes == 1 << 20
    del array
    gc.collect()
    assert host.current_bytes == 0


def test_scopes_nest_and_each_array_goes_back_to_where_it_came_from(resource):
    inner = StatisticsResource(FreeListResource(HostResource()))
    with use(resource):
        first = np.ones(10)
        with use(inner):
            second = np.ones(20)
        third = np.ones(30)
    assert live(resource) == 320 + 2 * HEAD_BYTES
    assert live(inner) == 160 + HEAD_BYTES
    assert (first.sum(), second.sum(), third.sum()) == (10, 20, 30)
    del first, second, third
    assert (live(resource), live(inner)) == (0, 0)


def test_one_scope_can_be_entered_again(resource):
    scope = use(resource)
    with scope, scope:
        kept = np.ones(1)
    assert resource.owns(address_of(kept))
    assert not resource.owns(address_of(np.ones(1)))


def test_a_scope_ends_with_an_exception(resource):
    with pytest.raises(KeyError), use(resource):
        raise KeyError
    assert not resource.owns(address_of(np.ones(100)))


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_zeros_are_zeros_in_memory_that_was_written_to(resource, size):
    with use(resource):
        for _ in range(3):
            np.full(size, 7.0)
            assert not np.zeros(size).any()


@pytest.mark.parametrize("sizes", [(10, 5_000), (5_000, 10), (100, 0), (0, 100)])
def test_a_resized_array_keeps_what_fits(resource, sizes):
    before, after = sizes
    with use(resource):
        array = np.arange(before)
    array.resize(after, refcheck=False)
    kept = min(sizes)
    np.testing.assert_array_equal(array[:kept], range(kept))
    assert not array[kept:].any()
    assert resource.owns(address_of(array))
    del array
    assert live(resource) == 0


def test_arrays_of_no_bytes_and_of_changed_shape_go_back(resource):
    with use(resource):
        arrays = [np.empty(0), np.empty((3, 0)), np.array(5.0), np.fromiter(range(1000), int)]
        arrays[3].shape = (10, 100)
    arrays.append(arrays[3].view(np.int8))
    del arrays
    assert live(resource) == 0
    assert resource.counters().current_count == 0


def test_a_refusal_is_a_memory_error_and_leaves_the_resource_as_it_was():
    limited = LimitingResource(HostResource(), 10_000)
    with use(limited):
        kept = np.ones(1000)
        with pytest.raises(MemoryError):
            np.empty(1000)
        with pytest.raises(MemoryError):
            kept.resize(2000, refcheck=False)
        with pytest.raises(MemoryError):
            np.zeros(1000)
    assert kept.sum() == 1000
    assert limited.current_bytes == 8000 + HEAD_BYTES


def test_every_failing_allocation_leaves_nothing_behind():
    for number in range(1, 12):
        resource = TrackingResource(FailingResource(FreeListResource(HostResource()), number))
        with use(resource), contextlib.suppress(MemoryError):
            np.sort(np.concatenate([np.arange(500.0), np.ones(500)]) * 2)[::3].copy()
        assert resource.live() == []


def test_other_threads_are_not_in_the_scope_but_may_end_its_arrays(resource):
    handed = []
    with use(resource):
        handed.append(np.ones(1000))

        def work():
            handed.append(np.ones(1000))
            handed.pop(0)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert live(resource) == 0
    assert not resource.owns(address_of(handed[0]))


def test_threads_use_one_resource_together(resource):
    sums = []

    def work():
        with use(resource):
            sums.extend(np.ones(size).sum() == size for size in range(1, 300))

    at_once(lambda _: work(), range(4))
    assert all(sums)
    assert live(resource) == 0


def test_a_context_of_its_own_has_a_scope_of_its_own(resource):
    context = contextvars.copy_context()
    scope = use(resource)
    context.run(scope.__enter__)
    assert not resource.owns(address_of(np.ones(100)))
    assert resource.owns(address_of(context.run(np.ones, 100)))
    context.run(scope.__exit__, None, None, None)


def test_python_functions_can_be_beneath_an_array():
    host = HostResource()
    with use(CallbackResource(host.allocate, host.deallocate)):
        array = np.ones(100)
    assert host.owns(address_of(array))
    del array
    assert host.current_bytes == 0


def compute():
    a = np.linspace(0, 1, 1001).reshape(7, 143)
    (a @ a.T).cumsum(axis=1).astype(np.float32).tobytes()
    np.unique(np.round(a, 2))
    np.pad(a, 3)


def test_a_checking_stack_finds_no_fault_in_numpy():
    compute()  # what NumPy keeps from the first time on
    guarded = GuardedResource(FreeListResource(HostResource()), quarantine_bytes=1 << 16)
    with use(guarded):
        compute()
    assert guarded.faults() == []
    assert guarded.statistics().current_count == 0


def loop(resource, count):
    with use(resource), counted(resource) as now:
        for _ in range(count):
            np.empty(64)
    assert now().total_count == count
    assert now().peak_count <= 2
    assert now().current_count == 0


def test_a_loop_leaves_nothing_behind(resource):
    loop(resource, 20_000)


@pytest.mark.slow
def test_ten_million_arrays_leave_nothing_behind(resource):
    loop(resource, 10_000_000)


@pytest.mark.parametrize("is_used", [False, True])
def test_a_scope_that_its_resource_refers_to_is_collected(is_used):
    seen = [owner_of_scope(is_used=is_used) for _ in range(50)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []


def test_a_scope_that_is_gone_leaves_the_resource_to_its_arrays():
    owner = Owner()
    with owner.scope:
        array = np.zeros(1 << 12, "u1")
    host = owner.host
    owner.itself = owner
    del owner
    gc.collect()
    array[...] = 1
    del array
    gc.collect()
    assert host.statistics().current_count == 0
