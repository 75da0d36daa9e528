"""Memory that the caller has, handed out as one block at a time."""

import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import RegionResource


@pytest.fixture
def region():
    return RegionResource(bytearray(4096))


def test_it_gives_one_block_at_a_time(region):
    address = region.allocate(100)
    with pytest.raises(OutOfMemoryError, match="one block at a time, and 100 bytes of it"):
        region.allocate(1)
    region.deallocate(address, 100)
    assert region.allocate(100) == address


@pytest.mark.parametrize(
    ("offset", "size", "words"),
    [
        (0, 99, "Give the size that it was allocated with"),
        (0, 101, "Give the size that it was allocated with"),
        (16, 100, "no block begins there"),
        (1 << 20, 100, "belong to this resource"),
    ],
)
def test_a_block_that_it_has_not_given_is_refused_and_the_other_stays(region, offset, size, words):
    address = region.allocate(100)
    with pytest.raises(InputError, match=words):
        region.deallocate(address + offset, size)
    assert region.statistics().current_bytes == 100
    region.deallocate(address, 100)
    with pytest.raises(InputError, match="already free"):
        region.deallocate(address, 100)


def test_a_block_that_its_alignment_leaves_no_room_for_is_refused(region):
    with pytest.raises(OutOfMemoryError, match="the region has 4096 bytes"):
        region.allocate(4096, 1 << 20)
