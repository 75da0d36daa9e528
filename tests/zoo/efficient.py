"""Networks for phones: MobileNetV2, and EfficientNet-B0 with squeeze-and-excite and swish."""

from tests.zoo.convolutional import conv
from tests.zoo.net import Case, Net

MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, channels, blocks and the stride of the first of them."""
EFFICIENTNET_B0 = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
"""The same, and the length of the depthwise kernel."""

Point = tuple[str, int]
"""A value and its channels."""


def mobilenet_v2(batch: int = 1, size: int = 224, depth: int = 7) -> Case:
    """torchvision's, batch normalizations folded by the exporter; the first `depth` stages."""
    net = Net(31)
    x = net.normal("x", batch, 3, size, size)
    point = relu6(net, conv(net, x, 3, 32, 3, strides=[2, 2])), 32
    for expansion, channels, blocks, stride in MOBILENET_V2[:depth]:
        for index in range(blocks):
            point = _inverted(net, point, channels, expansion, 1 if index else stride)
    x = relu6(net, conv(net, *point, 1280, 1))
    x = net("Flatten", net("GlobalAveragePool", x))
    net.output(net("Gemm", x, net.weight(1000, 1280, fan_in=2560), net.bias(1000), transB=1))
    return net.case()


def relu6(net: Net, x: str) -> str:
    """Clipped to [0, 6]."""
    return net("Clip", x, net.scalar(0), net.scalar(6))


def _inverted(net: Net, point: Point, channels: int, expansion: int, stride: int) -> Point:
    x, before = point
    y, wide = x, expansion * before
    if expansion > 1:
        y = relu6(net, conv(net, y, before, wide, 1))
    y = relu6(net, conv(net, y, wide, wide, 3, group=wide, strides=[stride] * 2))
    y = conv(net, y, wide, channels, 1)
    return (net("Add", x, y) if stride == 1 and before == channels else y), channels


def efficientnet_b0(batch: int = 1, size: int = 224, depth: int = 7) -> Case:
    """torchvision's, batch normalizations folded by the exporter; the first `depth` stages."""
    net = Net(32)
    x = net.normal("x", batch, 3, size, size)
    point = swish(net, conv(net, x, 3, 32, 3, strides=[2, 2], gain=1.1)), 32
    for expansion, channels, blocks, stride, kernel in EFFICIENTNET_B0[:depth]:
        for index in range(blocks):
            step = 1 if index else stride
            point = _excited(net, point, channels, expansion, step, kernel)
    x = swish(net, conv(net, *point, 1280, 1, gain=1.1))
    x = net("Flatten", net("GlobalAveragePool", x))
    net.output(net("Gemm", x, net.weight(1000, 1280, fan_in=2560), net.bias(1000), transB=1))
    return net.case()


def swish(net: Net, x: str) -> str:
    """`x * sigmoid(x)`, as opset 20 and older write it."""
    return net("Mul", x, net("Sigmoid", x))


def _excited(
    net: Net, point: Point, channels: int, expansion: int, stride: int, kernel: int
) -> Point:
    x, before = point
    y, wide = x, expansion * before
    if expansion > 1:
        y = swish(net, conv(net, y, before, wide, 1, gain=1.1))
    y = swish(net, conv(net, y, wide, wide, kernel, group=wide, strides=[stride] * 2, gain=1.1))
    squeezed = swish(net, conv(net, net("GlobalAveragePool", y), wide, max(1, before // 4), 1))
    gate = net("Sigmoid", conv(net, squeezed, max(1, before // 4), wide, 1))
    y = conv(net, net("Mul", gate, y), wide, channels, 1, gain=1.1)
    return (net("Add", y, x) if stride == 1 and before == channels else y), channels
