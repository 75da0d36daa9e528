"""Inception-BN, whose memory the note's cost script printed: a convolution is always followed by
a batch normalization and a ReLU, and four branches are joined in each block."""

from tests.zoo.net import Case, Net

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
"""Channels of the 1x1 branch, of the 3x3 branch, of the branch of two 3x3, and the pooling with
its projection; a block without the first and the last halves the picture."""


def inception_bn(batch: int = 1, size: int = 224, shrink: int = 1) -> Case:
    """The network of 224 x 224; `shrink` divides every number of channels."""
    net = Net(31)
    width = {"x": 3}

    def conv(x: str, channels: int, kernel: int, stride: int = 1) -> str:
        weight = net.weight(channels, width[x], kernel, kernel)
        y = net("Conv", x, weight, strides=[stride] * 2, pads=[kernel // 2] * 4)
        scale = [net.positive(channels), net.bias(channels)]
        y = net("BatchNormalization", y, *scale, net.bias(channels), net.positive(channels))
        y = net("Relu", y)
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
    y = net("Flatten", net("GlobalAveragePool", x), axis=1)
    y = net("Gemm", y, net.weight(1000, width[x], fan_in=2 * width[x]), net.bias(1000), transB=1)
    net.output(net("Softmax", y, axis=-1))
    return net.case()
