"""Recurrent networks."""

import numpy as np

from tests.zoo.net import Case, Net


def recurrent(steps: int = 7, batch: int = 2) -> Case:
    """A bidirectional LSTM over projected inputs, then a GRU, then a classifier of its end."""
    net = Net(8)
    x = net.normal("x", steps, batch, 12)
    hidden = 10
    x = net("Tanh", net("MatMul", x, net.weight(12, 12, fan_in=24)))
    y, last, _ = net.many(
        "LSTM", 3, x,
        net.weight(2, 4 * hidden, 12), net.weight(2, 4 * hidden, hidden), net.bias(2, 8 * hidden),
        hidden_size=hidden, direction="bidirectional",
    )  # fmt: skip
    both = net("Reshape", net("Transpose", y, perm=[0, 2, 1, 3]), net.ints(steps, batch, -1))
    y, end = net.many(
        "GRU", 2, both,
        net.weight(1, 3 * 6, 2 * hidden), net.weight(1, 3 * 6, 6), net.bias(1, 6 * 6),
        hidden_size=6, linear_before_reset=1,
    )  # fmt: skip
    end = net("Squeeze", end, net.ints(0))
    net.output(net("Gemm", end, net.weight(3, 6), net.bias(3), transB=1), last, y)
    return net.case()


def lstm(batch: int = 1, steps: int = 100, hidden: int = 256, *, both_ways: bool = False) -> Case:
    """`torch.nn.LSTM` of two layers over 128 features, batch first, and a classifier."""
    return _layered("LSTM", 4, (batch, steps, hidden), both_ways=both_ways)


def gru(batch: int = 1, steps: int = 100, hidden: int = 256) -> Case:
    """`torch.nn.GRU` of two layers over 128 features, batch first, and a classifier."""
    return _layered("GRU", 3, (batch, steps, hidden), linear_before_reset=1)


def _layered(
    operator: str, gates: int, shape: tuple[int, int, int], *, both_ways: bool = False,
    **attributes: int,
) -> Case:  # fmt: skip
    """Two layers as torch exports them: zero states given, directions joined by a Reshape."""
    batch, steps, hidden = shape
    net, ways, before = Net(45), 2 if both_ways else 1, 128
    x = net("Transpose", net.normal("x", batch, steps, before), perm=[1, 0, 2])
    for _ in range(2):
        zeros = net.constant(np.zeros((ways, batch, hidden), np.float32))
        weights = (
            net.weight(ways, gates * hidden, before, fan_in=2 * before),
            net.weight(ways, gates * hidden, hidden, fan_in=2 * hidden),
            net.bias(ways, 2 * gates * hidden),
        )
        states = [zeros] * (2 if operator == "LSTM" else 1)
        y = net(operator, x, *weights, "", *states, hidden_size=hidden,
                direction="bidirectional" if both_ways else "forward", **attributes)  # fmt: skip
        if both_ways:
            y = net("Transpose", y, perm=[0, 2, 1, 3])
            x = net("Reshape", y, net.ints(0, 0, -1))
        else:
            x = net("Squeeze", y, net.ints(1))
        before = ways * hidden
    x = net("Transpose", x, perm=[1, 0, 2])
    product = net("MatMul", x, net.weight(before, 32, fan_in=2 * before))
    net.output(net("Add", product, net.bias(32)))
    return net.case()
