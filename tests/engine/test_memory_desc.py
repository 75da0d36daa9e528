"""Descriptions of operands: equal ones are held once."""

import ctypes

import pytest

from tightship import _core
from tightship._core import MemoryDesc
from tightship.engine.library import open_library

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


class Heap(ctypes.Structure):
    """Result of `mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def test_equal_descriptions_take_the_memory_of_one():
    open_library()
    heap = ctypes.CDLL(None).mallinfo2
    heap.restype = Heap
    dims = [[2, 3], [4, 5], [4, 5, 6]]
    kept = [[MemoryDesc(each) for each in dims]]
    before = heap().uordblks
    kept += [[MemoryDesc(each) for each in dims] for _ in range(500)]
    assert heap().uordblks - before < 300 * 500
    assert all(row == kept[0] for row in kept)
    assert len({*kept[0]}) == 3


def test_descriptions_that_differ_in_strides_alone_are_two():
    open_library()
    rows, columns = MemoryDesc([4, 5]), MemoryDesc([4, 5], strides=[1, 4])
    assert rows != columns
    assert (rows.strides, columns.strides) == ([5, 1], [1, 4])
    del rows
    assert MemoryDesc([4, 5]).strides == [5, 1]


def test_strides_of_axes_of_length_one_are_those_that_were_given():
    """The library calls such descriptions equal, though its kernels take only some of them."""
    open_library()
    kept = [MemoryDesc([1, 3], strides=strides) for strides in ([3, 1], [1, 1], [7, 1])]
    assert [each.strides for each in kept] == [[3, 1], [1, 1], [7, 1]]
