"""Arrays of every thread in the blocks of a resource, whatever was made before or is freed later.

The switch stays in a process once it was used, so each test restores what it can see of it.
"""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.at_once import at_once
from tests.plug.owners import owner_of_scope
from tightship.plug.numpy import use
from tightship.resource import (
    FreeListResource,
    HostResource,
    LimitingResource,
    StatisticsResource,
    TrackingResource,
)

HEAD_BYTES = 64


@pytest.fixture
def resource():
    return StatisticsResource(TrackingResource(FreeListResource(HostResource())))


def live(resource):
    return resource.counters().current_bytes


def address_of(array):
    return array.__array_interface__["data"][0]


def test_threads_that_run_already_are_served(resource):
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(np.ones, [10] * 8))
        with use(resource, every_thread=True):
            arrays = list(workers.map(np.ones, range(1000, 1008)))
        after = list(workers.map(np.ones, range(1000, 1008)))
    assert all(resource.owns(address_of(array)) for array in arrays)
    assert not any(resource.owns(address_of(array)) for array in after)
    assert [array.sum() for array in arrays] == list(range(1000, 1008))
    assert live(resource) == sum(8 * size + HEAD_BYTES for size in range(1000, 1008))
    del arrays
    assert live(resource) == 0


def test_arrays_from_before_go_back_to_numpy_and_later_ones_come_from_it(resource):
    before = [np.ones(size) for size in (1, 1000, 1_000_000)]
    with use(resource, every_thread=True):
        before[1].resize(5000, refcheck=False)
        assert not resource.owns(address_of(before[1]))
        del before[2]
        kept = np.arange(100)
    del before
    kept.resize(10_000, refcheck=False)
    assert kept[:100].tolist() == list(range(100))
    assert not kept[100:].any()
    assert resource.owns(address_of(kept))
    assert not resource.owns(address_of(np.ones(100)))


@pytest.mark.parametrize("size", [0, 1, 100, 300_000])
def test_zeros_are_zeros_in_memory_that_was_written_to(resource, size):
    with use(resource, every_thread=True):
        for _ in range(3):
            np.full(size, 7.0)
            assert not np.zeros(size).any()


def test_a_threads_own_scope_goes_before_that_of_all(resource):
    own = StatisticsResource(HostResource())
    with use(resource, every_thread=True), use(own):
        array = np.ones(100)
    assert own.owns(address_of(array))
    assert live(resource) == 0


def test_the_scope_entered_last_counts_and_scopes_end_in_any_order(resource):
    other = StatisticsResource(FreeListResource(HostResource()))
    first, second = use(resource, every_thread=True), use(other, every_thread=True)
    first.__enter__()
    second.__enter__()
    in_second = np.ones(10)
    first.__exit__(None, None, None)
    still_in_second = np.ones(10)
    second.__exit__(None, None, None)
    outside = np.ones(10)
    assert [other.owns(address_of(each)) for each in (in_second, still_in_second, outside)] == [
        True,
        True,
        False,
    ]
    assert live(resource) == 0


def test_a_scope_that_is_dropped_open_ends(resource):
    scope = use(resource, every_thread=True)
    scope.__enter__()
    del scope
    assert not resource.owns(address_of(np.ones(100)))


def test_a_refusal_is_a_memory_error_in_any_thread(resource):
    limited = LimitingResource(resource, 100_000)
    refused = []

    def ask():
        try:
            np.ones(100_000)
        except MemoryError:
            refused.append(threading.get_ident())

    with use(limited, every_thread=True):
        at_once(lambda _: ask(), range(4))
        kept = np.ones(1000)
        with pytest.raises(MemoryError):
            kept.resize(100_000, refcheck=False)
    assert len(refused) == 4
    assert kept.sum() == 1000


def test_many_threads_allocate_and_free_at_once(resource):
    sums = []

    def work(number):
        for size in range(1, 300):
            array = np.full(size, number)
            array.resize(2 * size, refcheck=False)
            sums.append(array.sum() == number * size)

    with use(resource, every_thread=True):
        at_once(work, range(8))
    assert len(sums) == 8 * 299
    assert all(sums)
    assert live(resource) == 0


def test_arrays_of_a_thread_are_freed_by_another_after_the_scope(resource):
    handed = []
    with use(resource, every_thread=True):
        handed.append(np.ones(1000))
    thread = threading.Thread(target=handed.clear)
    thread.start()
    thread.join()
    assert live(resource) == 0


@pytest.mark.parametrize("is_used", [False, True])
def test_a_scope_that_its_resource_refers_to_is_collected(is_used):
    seen = [owner_of_scope(is_used=is_used, every_thread=True) for _ in range(20)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []


AT_THE_END = """
import threading, time
import numpy as np
from tightship.plug.numpy import use
from tightship.resource import CallbackResource, HostResource
host = HostResource()
scope = use(CallbackResource(host.allocate, host.deallocate), every_thread=True)
scope.__enter__()
kept = [np.ones(1000) for _ in range(100)]
threading.Thread(target=lambda: [np.ones(100) for _ in iter(int, 1)], daemon=True).start()
time.sleep(0.05)
"""
FORKED = """
import os
import numpy as np
from tightship.plug.numpy import use
from tightship.resource import FreeListResource, HostResource, StatisticsResource
resource = StatisticsResource(FreeListResource(HostResource()))
with use(resource, every_thread=True):
    kept = np.ones(1000)
    if os.fork() == 0:
        more = np.ones(2000)
        del kept
        os._exit(0 if resource.counters().current_bytes == 16064 and more.sum() == 2000 else 1)
    print(os.wait()[1], resource.counters().current_bytes)
"""


def test_a_process_ends_quietly_with_an_open_scope_and_a_busy_thread():
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, timeout=60,
                          text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_goes_on():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, timeout=60,
                          text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 8064\n", "")
