"""ResNet-50 as torchvision exports it: batch normalizations folded, one Flatten, one Gemm."""

from tests.zoo.convolutional import conv, norm
from tests.zoo.net import Case, Net

RESNET_50 = (3, 4, 6, 3)
"""Blocks of each stage."""


def resnet(
    batch: int = 1,
    size: int = 224,
    blocks: tuple[int, ...] = RESNET_50,
    width: int = 64,
    *,
    folded: bool = True,
) -> Case:
    """Bottleneck blocks; the stride is in the 3x3 convolution.

    Not folded, each convolution has its batch normalization behind it, as it was trained.
    """
    net = Net(30)

    def layer(x: str, before: int, after: int, kernel: int, **attributes: object) -> str:
        y = conv(net, x, before, after, kernel, **attributes)
        return y if folded else norm(net, y, after)

    x = net.normal("x", batch, 3, size, size)
    x = net("Relu", layer(x, 3, width, 7, strides=[2, 2]))
    x = net("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    before = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for index in range(count):
            stride = 2 if stage and not index else 1
            y = net("Relu", layer(x, before, inner, 1))
            y = net("Relu", layer(y, inner, inner, 3, strides=[stride] * 2))
            y = layer(y, inner, 4 * inner, 1, gain=0.5)
            if not index:
                x = layer(x, before, 4 * inner, 1, strides=[stride] * 2, gain=0.5)
            x = net("Relu", net("Add", y, x))
            before = 4 * inner
    x = net("Flatten", net("GlobalAveragePool", x), axis=1)
    net.output(net("Gemm", x, net.weight(1000, before, fan_in=2 * before), net.bias(1000),
                   transB=1))  # fmt: skip
    return net.case()
