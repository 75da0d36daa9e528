import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import BinningResource
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    GrowingVirtualResource,
    HostDevice,
    SharedDevice,
    StealingVirtualResource,
    virtual_resource,
)

PAGE_BYTES = 64 << 10


def test_the_default_steals_pages_of_the_process():
    made = virtual_resource(page_bytes=PAGE_BYTES)
    assert isinstance(made, StealingVirtualResource)
    made.deallocate(made.allocate(100), 100)
    assert made.virtual_statistics().physical_bytes == PAGE_BYTES


def test_pages_of_the_process_grow_with_what_is_live_if_no_size_is_given():
    made = virtual_resource()
    assert isinstance(made, GrowingVirtualResource)
    made.deallocate(made.allocate(100), 100)
    assert made.virtual_statistics().physical_bytes == 4 << 10
    other = virtual_resource(SharedDevice())
    assert isinstance(other, StealingVirtualResource)
    other.deallocate(other.allocate(100), 100)
    assert other.virtual_statistics().physical_bytes == 2 << 20


def test_the_seeds_policy_has_chunks_of_its_own_size():
    made = virtual_resource(HostDevice(), policy="chunked")
    assert isinstance(made, ChunkedVirtualResource)
    assert made.chunk_bytes == 20 << 20


def test_a_budget_is_kept():
    made = virtual_resource(page_bytes=PAGE_BYTES, max_bytes=PAGE_BYTES)
    with pytest.raises(OutOfMemoryError):
        made.allocate(PAGE_BYTES + 1)


@pytest.mark.parametrize("policy", ["stealing", "chunked"])
def test_small_requests_take_no_page(policy):
    made = virtual_resource(policy=policy, page_bytes=PAGE_BYTES, small_bytes=1000)
    assert isinstance(made, BinningResource)
    small = made.allocate(1000)
    assert made.upstream.virtual_statistics().physical_bytes == 0
    large = made.allocate(1001)
    assert made.upstream.virtual_statistics().physical_bytes == PAGE_BYTES
    made.deallocate(small, 1000)
    made.deallocate(large, 1001)
    assert made.statistics().current_bytes == 0


def test_what_would_not_be_as_said_is_refused():
    with pytest.raises(InputError, match="no budget"):
        virtual_resource(policy="chunked", max_bytes=1 << 30)
    with pytest.raises(InputError, match="SharedDevice"):
        virtual_resource(SharedDevice(), small_bytes=1000)


def test_an_unknown_policy_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="Unknown policy `page`; choose `stealing` or `chunked`"):
        virtual_resource(policy="page")
