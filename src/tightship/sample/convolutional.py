"""Convolutional networks: the memory note's Inception-BN, and ResNet-50."""

from typing import Any

from tightship.sample.network import Length, Network

BLOCKS = (
    (64, (64, 64), (64, 96), ("AveragePool", 32)),
    (64, (64, 96), (64, 96), ("AveragePool", 64)),
    (None, (128, 160), (64, 96), None),
    (224, (64, 96), (96, 128), ("AveragePool", 128)),
    (192, (96, 128), (96, 128), ("AveragePool", 128)),
    (160, (128, 160), (128, 160), ("AveragePool", 128)),
    (96, (128, 192), (160, 192), ("AveragePool", 128)),
    (None, (128, 192), (192, 256), None),
    (352, (192, 320), (160, 224), ("AveragePool", 128)),
    (352, (192, 320), (192, 224), ("MaxPool", 128)),
)
"""Channels of the 1x1 branch, of the 3x3 branch, of the branch of two 3x3, and the pooling with its
projection; a block without the first and the last halves the picture."""

RESNET_50 = (3, 4, 6, 3)
"""Blocks of each stage."""


def inception_bn(net: Network, batch: Length, size: int = 224, shrink: int = 1) -> None:
    """Write Inception-BN, whose memory the note's cost script printed.

    A convolution is always followed by a batch normalization and a ReLU, and four branches are
    joined in each block.

    Args:
        net: Network to write into.
        batch: Pictures.
        size: Height and width of a picture.
        shrink: Divisor of every number of channels.
    """
    width = {"x": 3}

    def conv(x: str, channels: int, kernel: int, stride: int = 1) -> str:
        weight = net.weight(channels, width[x], kernel, kernel)
        y = net("Conv", x, weight, strides=[stride] * 2, pads=[kernel // 2] * 4)
        y = net("Relu", normalization(net, y, channels))
        width[y] = channels
        return y

    def pool(x: str, operator: str, stride: int) -> str:
        y = net(operator, x, kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4)
        width[y] = width[x]
        return y

    x = net.normal("x", batch, 3, size, size)
    x = pool(conv(x, 64 // shrink, 7, 2), "MaxPool", 2)
    x = pool(conv(conv(x, 64 // shrink, 1), 192 // shrink, 3), "MaxPool", 2)
    for single, (reduced, wide), (reduced_twice, wide_twice), pooled in BLOCKS:
        stride = 1 if pooled else 2
        branches = [conv(x, single // shrink, 1)] if single else []
        branches.append(conv(conv(x, reduced // shrink, 1), wide // shrink, 3, stride))
        y = conv(conv(x, reduced_twice // shrink, 1), wide_twice // shrink, 3)
        branches.append(conv(y, wide_twice // shrink, 3, stride))
        if pooled:
            branches.append(conv(pool(x, pooled[0], 1), pooled[1] // shrink, 1))
        else:
            branches.append(pool(x, "MaxPool", 2))
        x = net("Concat", *branches, axis=1)
        width[x] = sum(width[branch] for branch in branches)
    net.output(net("Softmax", _classified(net, x, width[x]), axis=-1))


def resnet(
    net: Network,
    batch: Length,
    size: int = 224,
    blocks: tuple[int, ...] = RESNET_50,
    width: int = 64,
    *,
    folded: bool = False,
) -> None:
    """Write a ResNet of bottleneck blocks; the stride is in the 3x3 convolution.

    Args:
        net: Network to write into.
        batch: Pictures.
        size: Height and width of a picture.
        blocks: Blocks of each stage.
        width: Channels of the first convolution.
        folded: Whether batch normalizations are folded into the convolutions, as for inference.
    """

    def layer(
        x: str, before: int, after: int, kernel: int, stride: int = 1, gain: float = 1
    ) -> str:
        y = convolution(net, x, before, after, kernel, strides=[stride] * 2, gain=gain)
        return y if folded else normalization(net, y, after)

    x = net.normal("x", batch, 3, size, size)
    x = net("Relu", layer(x, 3, width, 7, 2))
    x = net("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    before = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for index in range(count):
            stride = 2 if stage and not index else 1
            y = net("Relu", layer(x, before, inner, 1))
            y = net("Relu", layer(y, inner, inner, 3, stride))
            y = layer(y, inner, 4 * inner, 1, gain=0.5)
            if not index:
                x = layer(x, before, 4 * inner, 1, stride, gain=0.5)
            x = net("Relu", net("Add", y, x))
            before = 4 * inner
    net.output(_classified(net, x, before))


def convolution(
    net: Network,
    x: str,
    before: int,
    after: int,
    kernel: int,
    *,
    gain: float = 1,
    **attributes: int | list[int],
) -> str:
    """Write a 2-D convolution, padded to keep the size at stride 1 unless pads are given.

    Its weights have `gain` times the variance that a ReLU asks for.
    """
    group = attributes.get("group", 1)
    assert isinstance(group, int)
    fan_in = before // group * kernel**2 / gain
    weight = net.weight(after, before // group, kernel, kernel, fan_in=fan_in)
    written: dict[str, Any] = {"pads": [kernel // 2] * 4} | attributes
    return net("Conv", x, weight, net.bias(after), **written)


def normalization(net: Network, x: str, channels: int) -> str:
    """Write a batch normalization."""
    parameters = (net.positive(channels), net.bias(channels), net.bias(channels))
    return net("BatchNormalization", x, *parameters, net.positive(channels))


def _classified(net: Network, x: str, channels: int) -> str:
    """Write the scores of 1,000 classes."""
    y = net("Flatten", net("GlobalAveragePool", x), axis=1)
    weight, bias = net.weight(1000, channels, fan_in=2 * channels), net.bias(1000)
    return net("Gemm", y, weight, bias, transB=1)
