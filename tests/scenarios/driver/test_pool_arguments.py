"""Inputs in pools: floats where they lie; what an index may be made of as it was checked."""

import os

import numpy as np
import pytest

from tightship.driver.memory.descriptor import new_segment
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.models.running import Runs
from tightship.driver.service.effects import RunArgument
from tightship.driver.types.elements import value_type
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent

SIZE = 4096


@pytest.mark.parametrize(
    ("dtype", "is_left"), [("f4", True), ("f2", True), ("i4", False), ("u1", False), ("?", False)]
)
def test_what_may_be_an_index_is_copied_before_it_is_used(dtype, is_left):
    file = new_segment(SIZE)
    assert os.fstat(file).st_blocks * 512 >= SIZE, "its memory is there before it is mapped"
    pool = Pool(1, "ashmem", Extent((1, file), 0, SIZE), 3, PoolMode.SEALED, file, True)
    mappings = Mappings(FileProber())
    kind = value_type(np.dtype(dtype), (1, 8), "x")
    location = DataLocation(0, 64, 8 * np.dtype(dtype).itemsize)
    found = Runs({}, mappings, None)._input(RunArgument((1, 8), location, pool), kind)
    assert np.shares_memory(found, mappings.map(pool)) == is_left
    mappings.drop(pool)
