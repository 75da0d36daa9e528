"""Operators that compute keep samples apart, or are refused."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.batch_axis.opened import check_or_refusal, opened
from tests.zoo.net import Net
from tightship.graph.batch_axis import FixedBatchError


@pytest.mark.parametrize(
    ("write", "batch", "reason"),
    [
        (
            lambda net, x: net("Add", x, net.constant(np.ones((3, 4), np.float32))),
            1,
            "broadcasts a sample over `c0`",
        ),
        (
            lambda net, x: net(
                "Add", x, net.constant(np.arange(8, dtype=np.float32).reshape(2, 4))
            ),
            2,
            "differs between samples",
        ),
        (lambda net, x: net("Add", x, net("Transpose", x)), 4, "along different axes"),
        (lambda net, x: net("Softmax", x, axis=0), 2, "normalizes along the batch, axis 0"),
        (
            lambda net, x: net("ReduceMean", x, net.ints(0), keepdims=0),
            2,
            "reduces along the batch, axis 0",
        ),
        (lambda net, x: net("ReduceMax", x), 2, "reduces along the batch, axis 0"),
        (lambda net, x: net("ArgMax", x, axis=0), 2, "reduces along the batch"),
        (lambda net, x: net("Trilu", x), 2, "is not known to keep samples apart"),
        (
            lambda net, x: net("LayerNormalization", x, net.bias(2, 4), axis=0),
            2,
            "normalizes along the batch",
        ),
        (
            lambda net, x: net(
                "Softmax", net("Gather", net.weight(9, 3), net("Cast", x, to=7)), axis=2
            ),
            2,
            "",
        ),
    ],
)
def test_each_node_keeps_samples_apart_or_says_why_not(
    write: Callable[[Net, str], str], batch: int, reason: str
) -> None:
    check_or_refusal(write, batch, reason)


def test_places_of_maxima_are_refused() -> None:
    net = Net()
    x = net("Unsqueeze", net.normal("x", 2, 4), net.ints(1))
    net.output(*net.many("MaxPool", 2, x, kernel_shape=[2]))
    with pytest.raises(FixedBatchError, match="counts places of its maxima over the whole batch"):
        opened(net.case().model)
