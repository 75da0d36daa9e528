"""Recurrent networks."""

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
