import copy
import pickle

import pytest

from tests.resource.conformance import RESOURCES, ROOTS
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import HostResource, SlabResource

EVERY = {
    **ROOTS,
    **{name: lambda make=make: make(HostResource()) for name, make in RESOURCES.items()},
}


@pytest.fixture(params=EVERY)
def resource(request):
    return EVERY[request.param]()


@pytest.mark.parametrize("size", [-1, -(1 << 70)])
def test_a_size_below_zero_is_refused_with_the_number(resource, size):
    with pytest.raises(InputError, match=rf"`size_bytes` \(= {size}\) must be at least 0"):
        resource.allocate(size)


def test_no_bytes_have_an_address_of_their_own_and_go_back(resource):
    before = resource.statistics().current_count
    address = resource.allocate(0, 8)
    assert address
    assert resource.statistics().current_count == before + 1
    resource.deallocate(address, 0, 8)
    many = resource.allocate_many(1, 0, 8)
    resource.deallocate_many(many, 0, 8)
    if resource.supports_free:
        assert resource.statistics().current_count == before


def test_a_size_may_be_a_text_with_a_unit(resource):
    address = resource.allocate("0.125KiB", 8)
    resource.deallocate(address, 128, 8)
    block = resource.allocate_block("64 B", 8)
    assert block.size_bytes == 64
    with pytest.raises(InputError, match="`size_bytes`: `64 pages` is not an amount of memory"):
        resource.allocate("64 pages")


@pytest.mark.parametrize("size", [(1 << 56) + 1, 1 << 63, 1 << 90])
def test_a_size_above_the_address_space_is_refused_with_the_number(resource, size):
    with pytest.raises(OutOfMemoryError, match=rf"{size} bytes.*2\*\*56"):
        resource.allocate(size)


@pytest.mark.parametrize("alignment", [0, -16, 3, 24, (1 << 40) + 1, 1 << 60, 1 << 80])
def test_an_alignment_that_is_no_power_of_two_is_refused_with_the_number(resource, alignment):
    with pytest.raises(InputError, match=rf"`alignment` \(= {alignment}\) must be a power of two"):
        resource.allocate(16, alignment)


def test_a_request_that_cannot_be_met_raises_both_kinds_of_error_and_changes_nothing(resource):
    before = resource.statistics()
    with pytest.raises(OutOfMemoryError, match="Cannot allocate 72057594037927936 bytes") as error:
        resource.allocate(1 << 56)
    assert isinstance(error.value, MemoryError)
    assert error.value.requested_bytes == 1 << 56
    after = resource.statistics()
    assert (before.current_bytes, before.reserved_bytes) == (
        after.current_bytes,
        after.reserved_bytes,
    )


def test_a_foreign_address_is_refused(resource):
    other = HostResource()
    address = other.allocate(100)
    assert not resource.owns(address)
    with pytest.raises(InputError, match=rf"100 bytes at {address:#x}: the address does not"):
        resource.deallocate(address, 100)
    other.deallocate(address, 100)


def test_a_resource_equals_itself_only(resource):
    assert resource == resource  # noqa: PLR0124
    assert resource != HostResource()
    assert resource != 1
    assert len({resource, resource}) == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_resource_is_neither_copied_nor_pickled(resource, copied):
    with pytest.raises(TypeError, match="cannot be"):
        copied(resource)


def test_many_blocks_are_all_or_none():
    slab = SlabResource(HostResource(), 1 << 16, 64)
    with pytest.raises(OutOfMemoryError, match=f"{slab.block_count + 1} blocks, only"):
        slab.allocate_many(slab.block_count + 1, 64)
    assert slab.statistics().current_count == 0
    assert len(slab.allocate_many(slab.block_count, 64)) == slab.block_count


def test_of_many_blocks_that_are_given_back_only_the_false_one_is_refused():
    slab = SlabResource(HostResource(), 1 << 16, 64)
    blocks = slab.allocate_many(10, 64)
    slab.deallocate(int(blocks[3]), 64)
    with pytest.raises(InputError, match="already free"):
        slab.deallocate_many(blocks, 64)
    assert slab.statistics().current_count == 0
