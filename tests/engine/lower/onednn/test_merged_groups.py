"""Convolutions in groups as ones in fewer groups, with zero weights between."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.models import filled
from tightship.engine.lower.onednn.merged_groups import MOST_MERGED, merged, merges
from tightship.graph import Inline, Node


def convolution(groups):
    return Node("conv", "Conv", ("x", "w"), ("y",), {"group": groups})


@pytest.mark.parametrize("groups", [1, 2, 7, 96, 4096])
def test_any_merge_divides_the_groups_and_is_bounded(groups):
    counts = merges(convolution(groups))
    assert all(1 < count <= MOST_MERGED and groups % count == 0 for count in counts)
    assert counts == sorted(counts)
    assert bool(counts) == (groups > 1)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_weights_are_where_they_were_with_zeros_between(dtype):
    weights = (filled(8, 3, 2, 2) * 50).astype(dtype)
    added = {}
    builder = SimpleNamespace(constant={"w": Inline(weights)}.get, add_constant=added.__setitem__)
    node = merged(builder, convolution(4), 2)
    whole = added[node.inputs[1]].array()
    assert node.attributes["group"] == 2
    assert (whole.dtype, whole.shape) == (weights.dtype, (8, 6, 2, 2))
    for row in range(8):
        first = 3 * (row // 2 % 2)
        np.testing.assert_array_equal(whole[row, first : first + 3], weights[row])
    assert np.count_nonzero(whole) == np.count_nonzero(weights)
