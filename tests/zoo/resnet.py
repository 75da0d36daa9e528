"""ResNet-50 as torchvision exports it: batch normalizations folded, one Flatten, one Gemm."""

from tests.zoo.convolutional import conv
from tests.zoo.net import Case, Net

RESNET_50 = (3, 4, 6, 3)
"""Blocks of each stage."""


def resnet(
    batch: int = 1, size: int = 224, blocks: tuple[int, ...] = RESNET_50, width: int = 64
) -> Case:
    """Bottleneck blocks; the stride is in the 3x3 convolution."""
    net = Net(30)
    x = net.normal("x", batch, 3, size, size)
    x = net("Relu", conv(net, x, 3, width, 7, strides=[2, 2]))
    x = net("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    before = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for index in range(count):
            stride = 2 if stage and not index else 1
            y = net("Relu", conv(net, x, before, inner, 1))
            y = net("Relu", conv(net, y, inner, inner, 3, strides=[stride] * 2))
            y = conv(net, y, inner, 4 * inner, 1, gain=0.5)
            if not index:
                x = conv(net, x, before, 4 * inner, 1, strides=[stride] * 2, gain=0.5)
            x = net("Relu", net("Add", y, x))
            before = 4 * inner
    x = net("Flatten", net("GlobalAveragePool", x), axis=1)
    net.output(net("Gemm", x, net.weight(1000, before, fan_in=2 * before), net.bias(1000),
                   transB=1))  # fmt: skip
    return net.case()
