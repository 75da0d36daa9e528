"""U-Net: a convolutional encoder and decoder joined by skips."""

import numpy as np

from tests.zoo.convolutional import conv
from tests.zoo.net import Case, Net


def unet(
    batch: int = 1, size: int = 256, width: int = 32, levels: int = 4, *, resized: bool = False
) -> Case:
    """Goes up by transposed convolutions, or `resized` by bilinear interpolation."""
    net = Net(34)
    x = _twice(net, net.normal("x", batch, 3, size, size), 3, width)
    skips = []
    for level in range(1, levels + 1):
        skips.append(x)
        x = net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = _twice(net, x, width << (level - 1), width << level)
    for level in range(levels, 0, -1):
        above = width << level
        if resized:
            scales = net.constant(np.float32([1, 1, 2, 2]))
            up = net("Resize", x, "", scales, mode="linear",
                     coordinate_transformation_mode="half_pixel")  # fmt: skip
            up = conv(net, up, above, above // 2, 1)
        else:
            weight = net.weight(above, above // 2, 2, 2, fan_in=2 * above)
            up = net("ConvTranspose", x, weight, net.bias(above // 2), kernel_shape=[2, 2],
                     strides=[2, 2])  # fmt: skip
        x = _twice(net, net("Concat", skips.pop(), up, axis=1), above, above // 2)
    net.output(conv(net, x, width, 2, 1))
    return net.case()


def _twice(net: Net, x: str, before: int, after: int) -> str:
    x = net("Relu", conv(net, x, before, after, 3))
    return net("Relu", conv(net, x, after, after, 3))
