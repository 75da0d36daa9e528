"""Operators that move elements keep samples apart, or are refused."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.batch_axis.opened import check_or_refusal
from tests.zoo.net import Net


@pytest.mark.parametrize(
    ("write", "batch", "reason"),
    [
        (lambda net, x: net("Reshape", x, net.ints(4, 2)), 2, ""),
        (
            lambda net, x: net("Reshape", net("Transpose", x), net.ints(-1)),
            2,
            "divides the elements of a sample",
        ),
        (
            lambda net, x: net("Slice", x, net.ints(0), net.ints(1), net.ints(0)),
            2,
            "ends at sample 1",
        ),
        (
            lambda net, x: net("Slice", x, net.ints(1), net.ints(2**40), net.ints(0)),
            2,
            "takes a part of the batch",
        ),
        (lambda net, x: net("Slice", x, net.ints(0, 1), net.ints(2**40, 3), net.ints(0, 1)), 2, ""),
        (lambda net, x: net("Concat", x, x, axis=0), 2, "joins values along the batch"),
        (lambda net, x: net("Gather", x, net.ints(1), axis=0), 2, "picks along the batch"),
        (lambda net, x: net("Gather", x, net.ints(1, 3, 0), axis=1), 2, ""),
        (lambda net, x: net("Pad", x, net.ints(0, 1, 0, 2)), 2, ""),
        (lambda net, x: net("Pad", x, net.ints(1, 0, 0, 0)), 2, "adds samples to the batch"),
        (lambda net, x: net("Tile", x, net.ints(2, 1)), 2, "repeats samples"),
        (lambda net, x: net("Expand", x, net.ints(3, 4)), 1, "repeats a sample"),
        (lambda net, x: net("Expand", net("Unsqueeze", x, net.ints(1)), net.ints(2, 5, 4)), 2, ""),
        (
            lambda net, x: net("Squeeze", net("Unsqueeze", x, net.ints(0))),
            1,
            "removes all axes of length 1",
        ),
        (lambda net, x: net("Squeeze", net("Unsqueeze", x, net.ints(0)), net.ints(0)), 2, ""),
        (lambda net, x: net("Flatten", net("Unsqueeze", x, net.ints(0)), axis=1), 2, ""),
        (lambda net, x: net("CumSum", x, net.constant(np.int64(0))), 2, "sums along the batch"),
        (lambda net, x: net("CumSum", x, net.constant(np.int64(1))), 2, ""),
    ],
)
def test_each_node_keeps_samples_apart_or_says_why_not(
    write: Callable[[Net, str], str], batch: int, reason: str
) -> None:
    check_or_refusal(write, batch, reason)
