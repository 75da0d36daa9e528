"""A ResNet without its classifier, whose stages detectors read."""

from tests.zoo.net import Net
from tightship.sample.convolutional import convolution


def backbone(net: Net, side: int, width: int, blocks: tuple[int, ...]) -> list[tuple[str, int]]:
    """Write a ResNet over a picture of `side` pixels; return each stage and its channels.

    Batch normalizations are folded, and blocks add little, so that values keep their size.

    Args:
        net: Net to write into; gets the input `image`.
        side: Height and width.
        width: Channels of the first convolution.
        blocks: Blocks of each stage.
    """
    x = net.normal("image", 1, 3, side, side)
    x = net("Relu", convolution(net, x, 3, width, 7, strides=[2, 2]))
    x = net("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels, stages = width, []
    for stage, count in enumerate(blocks):
        inner = width << stage
        for index in range(count):
            x = _bottleneck(net, x, channels, inner, 2 if stage and not index else 1)
            channels = 4 * inner
        stages.append((x, channels))
    return stages


def _bottleneck(net: Net, x: str, before: int, inner: int, stride: int) -> str:
    y = net("Relu", convolution(net, x, before, inner, 1))
    y = net("Relu", convolution(net, y, inner, inner, 3, strides=[stride] * 2))
    y = convolution(net, y, inner, 4 * inner, 1, gain=0.1)
    if before != 4 * inner or stride > 1:
        x = convolution(net, x, before, 4 * inner, 1, strides=[stride] * 2, gain=0.5)
    return net("Relu", net("Add", y, x))
