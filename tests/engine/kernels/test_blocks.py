import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tightship.engine.kernels.blocks import blocks


@given(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5), st.integers(1, 20))
def test_blocks_cover_every_element_once_and_are_small(shape, limit):
    count = np.zeros(shape, int)
    for index in blocks(shape, limit):
        assert count[index].size <= limit
        count[index] += 1
    assert (count == 1).all()
