"""The current resource, and the habits of RMM's users around it."""

import numpy as np
import pytest

from tests.at_once import at_once
from tightship.errors import InputError, InputTypeError, OutOfMemoryError
from tightship.plug.numpy import use
from tightship.resource import (
    FreeListResource,
    HostResource,
    LimitingResource,
    StatisticsResource,
    current_resource,
    main_memory,
    reinitialize,
    set_current_resource,
    statistics,
)

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _as_before():
    before = current_resource()
    yield
    set_current_resource(before)


def test_main_memory_is_current_at_first_and_another_after_it_was_set() -> None:
    resource = HostResource()
    set_current_resource(resource)
    assert current_resource() is resource
    with pytest.raises(InputTypeError, match="`resource` is 5; give a memory resource"):
        set_current_resource(5)
    assert current_resource() is resource
    set_current_resource(main_memory())
    assert current_resource() is main_memory()


def test_the_current_resource_is_the_processs() -> None:
    resource = HostResource()
    set_current_resource(resource)
    assert at_once(lambda _: current_resource() is resource, range(3)) == [True] * 3


def test_arrays_come_from_the_current_resource_unless_one_is_named() -> None:
    resource = StatisticsResource(HostResource())
    set_current_resource(resource)
    with use():
        array = np.ones(1000)
    assert resource.owns(array.ctypes.data)


def test_reinitialize_makes_pages_a_limit_or_a_pool() -> None:
    assert isinstance(reinitialize(), HostResource)
    limited = reinitialize(max_bytes="1MiB")
    assert isinstance(limited, LimitingResource)
    assert current_resource() is limited
    with pytest.raises(OutOfMemoryError):
        limited.allocate("1.5MiB")
    pooled = reinitialize(pool=True, initial_bytes="4MiB", max_bytes="8MiB")
    assert isinstance(pooled, FreeListResource)
    assert pooled.statistics().reserved_bytes == 4 * MIB
    with pytest.raises(OutOfMemoryError):
        pooled.allocate(16 * MIB)


def test_reinitialize_refuses_a_pools_amount_without_a_pool_and_changes_nothing(tmp_path) -> None:
    before = reinitialize()
    with pytest.raises(InputError, match=r"`initial_bytes` .* is for a pool; give `pool=True`"):
        reinitialize(initial_bytes="1MiB")
    with pytest.raises(InputError, match="must not exceed"):
        reinitialize(pool=True, initial_bytes="2MiB", max_bytes="1MiB")
    with pytest.raises((InputError, OSError), match="nowhere"):
        reinitialize(log=tmp_path / "nowhere" / "log.csv")
    assert current_resource() is before


def test_blocks_outlive_a_reinitialization() -> None:
    block = reinitialize(pool=True).allocate_block(1000)
    reinitialize()
    block.array()[:] = 7
    assert block.array().sum() == 7000


def test_a_log_has_a_line_for_each_request(tmp_path) -> None:
    resource = reinitialize(statistics=True, log=tmp_path / "log.csv")
    resource.deallocate(resource.allocate(100), 100)
    resource.flush()
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3


def test_statistics_count_within_the_statement_alone_and_nest() -> None:
    before = reinitialize()
    with statistics() as outer:
        first = current_resource().allocate(100)
        with statistics() as inner:
            second = current_resource().allocate(1000)
        assert (inner().peak_bytes, inner().current_count) == (1000, 1)
        assert outer().peak_bytes == 1100
        current_resource().deallocate(first, 100)
        current_resource().deallocate(second, 1000)
    assert (outer().current_bytes, outer().total_count) == (0, 2)
    assert current_resource() is before


def test_statistics_of_a_resource_that_counts_are_its_own_and_another_set_within_stays() -> None:
    counting = reinitialize(statistics=True)
    with statistics() as now:
        assert current_resource() is counting
        counting.deallocate(counting.allocate(10), 10)
    assert now().total_count == 1
    reinitialize()
    with statistics():
        other = reinitialize()
    assert current_resource() is other
