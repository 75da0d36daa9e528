"""Networks whose branches take more memory if they run at once."""

from tests.zoo.net import Case, Net


def priced(count: int = 4, wide: int = 512) -> Case:
    """Branches that become wide and narrow again, and their sum."""
    net = Net(7)
    x = net.normal("x", 64, 64)
    ends = []
    for _ in range(count):
        y = net("Tanh", net("MatMul", x, net.weight(64, wide)))
        ends.append(net("MatMul", y, net.weight(wide, 16)))
    net.output(net("Sum", *ends))
    return net.case()
