"""Refusals name the node, and what it does."""

import numpy as np
import pytest

from tests.graph.batch_axis.opened import opened
from tests.zoo.net import Net
from tightship.errors import InputError
from tightship.graph.batch_axis import FixedBatchError


def test_shapes_that_are_computed_are_refused() -> None:
    net = Net()
    x = net.normal("x", 2, 4)
    axes = net.input("axes", np.array([1]))
    net.output(net("ReduceSum", x, axes))
    with pytest.raises(FixedBatchError, match="has a shape that data decide"):
        opened(net.case().model)


def test_the_error_is_one_of_input() -> None:
    assert issubclass(FixedBatchError, InputError)
