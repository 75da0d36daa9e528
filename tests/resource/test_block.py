import copy
import gc
import pickle

import numpy as np
import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import HostResource, SlabResource

VIEWS = {
    "buffer": memoryview,
    "dlpack": np.from_dlpack,
    "array_interface": lambda block: np.array(
        type("View", (), {"__array_interface__": block.__array_interface__, "kept": block})(),
        copy=False,
    ),
    "numpy": np.asarray,
    "array": lambda block: block.array(),
}


@pytest.fixture
def slab():
    return SlabResource(HostResource(), 1 << 16, 256)


@pytest.mark.parametrize("view", VIEWS)
def test_a_block_lives_as_long_as_its_last_view(slab, view):
    block = slab.allocate_block(200)
    block.array()[:] = range(200)
    seen = VIEWS[view](block)
    assert bytes(seen) == bytes(range(200))
    seen[7] = 99
    assert block.array()[7] == 99
    del block
    gc.collect()
    assert slab.statistics().current_count == 1
    del seen
    gc.collect()
    assert slab.statistics().current_count == 0


def test_dlpack_says_the_processor_and_shares_the_bytes(slab):
    block = slab.allocate_block(64)
    assert block.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(block).ctypes.data == block.address


def test_a_block_says_what_it_is(slab):
    block = slab.allocate_block(100, 64)
    assert (block.size_bytes, len(block), block.address % 64) == (100, 100, 0)
    assert block.resource is slab


def test_a_block_keeps_its_resource():
    block = SlabResource(HostResource(), 1 << 16, 256).allocate_block(256)
    gc.collect()
    memoryview(block)[:] = bytes(256)


def test_a_block_of_no_bytes_is_one(slab):
    block = slab.allocate_block(0)
    assert (len(block), block.array().size, slab.statistics().current_count) == (0, 0, 1)


@pytest.mark.parametrize(
    ("size", "error"), [(-1, InputError), (257, OutOfMemoryError), (1 << 80, OutOfMemoryError)]
)
def test_a_block_that_cannot_be_had_is_refused(slab, size, error):
    with pytest.raises(error, match=str(size)):
        slab.allocate_block(size)
    assert slab.statistics().current_count == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_block_is_neither_copied_nor_pickled(slab, copied):
    with pytest.raises(TypeError, match="cannot be"):
        copied(slab.allocate_block(8))
