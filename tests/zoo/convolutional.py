"""Convolutional networks: residual, mobile, upsampling, and convolutions of every kind."""

from tests.zoo.net import Case, Net
from tightship.sample.convolutional import convolution as conv
from tightship.sample.convolutional import normalization as norm


def residual(batch: int = 1, channels: int = 32, size: int = 28) -> Case:
    """Two residual blocks, one with a projection, then pooling and a classifier."""
    net = Net(1)
    x = net.normal("x", batch, 3, size, size)
    x = net("Relu", norm(net, conv(net, x, 3, channels, 3), channels))
    y = net("Relu", norm(net, conv(net, x, channels, channels, 3), channels))
    x = net("Relu", net("Add", norm(net, conv(net, y, channels, channels, 3), channels), x))
    y = net("Relu", conv(net, x, channels, 2 * channels, 3, strides=[2, 2]))
    y = conv(net, y, 2 * channels, 2 * channels, 3)
    shortcut = conv(net, x, channels, 2 * channels, 1, strides=[2, 2])
    x = net("Relu", net("Add", shortcut, y))
    x = net("Flatten", net("GlobalAveragePool", x))
    x = net("Gemm", x, net.weight(10, 2 * channels), net.bias(10), transB=1)
    net.output(net("Softmax", x, axis=1))
    return net.case()


def hard_swish(net: Net, x: str) -> str:
    """`x * relu6(x + 3) / 6`, as older exporters write it."""
    six = net("Clip", net("Add", x, net.scalar(3)), net.scalar(0), net.scalar(6))
    return net("Div", net("Mul", x, six), net.scalar(6))


def mobile(batch: int = 1, size: int = 32) -> Case:
    """Inverted residuals: depthwise, relu6, hard-swish, squeeze and excite."""
    net = Net(2)
    x = net.normal("x", batch, 3, size, size)
    x = hard_swish(net, norm(net, conv(net, x, 3, 16, 3, strides=[2, 2]), 16))
    for expanded in (64, 72):
        y = norm(net, conv(net, x, 16, expanded, 1), expanded)
        y = net("Clip", y, net.scalar(0), net.scalar(6))
        y = norm(net, conv(net, y, expanded, expanded, 3, group=expanded), expanded)
        y = net("HardSwish", y)
        squeezed = net("Relu", conv(net, net("GlobalAveragePool", y), expanded, 8, 1))
        excited = net("HardSigmoid", conv(net, squeezed, 8, expanded, 1), alpha=1 / 6)
        y = norm(net, conv(net, net("Mul", y, excited), expanded, 16, 1), 16)
        x = net("Add", x, y)
    mean = net("ReduceMean", x, net.ints(2, 3), keepdims=0)
    net.output(net("MatMul", mean, net.weight(16, 5, fan_in=16)))
    return net.case()


def silu(net: Net, x: str) -> str:
    """`x * sigmoid(x)`."""
    return net("Mul", x, net("Sigmoid", x))


def detector(size: int = 32) -> Case:
    """A detector's neck: SiLU, split and concatenated, pooled at three sizes, upsampled."""
    net = Net(3)
    x = net.normal("x", 1, 3, size, size)
    fine = silu(net, conv(net, x, 3, 24, 3, strides=[2, 2]))
    left, right = net.many("Split", 2, fine, axis=1, num_outputs=2)
    deeper = silu(net, conv(net, silu(net, conv(net, right, 12, 12, 3)), 12, 12, 3))
    fine = silu(net, conv(net, net("Concat", left, right, deeper, axis=1), 36, 24, 1))
    x = silu(net, conv(net, fine, 24, 34, 3, strides=[2, 2]))
    pools = [x]
    for _ in range(3):
        pools.append(net("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2, 2, 2, 2]))
    x = silu(net, conv(net, net("Concat", *pools, axis=1), 136, 24, 1))
    scales = net.constant([1.0, 1.0, 2.0, 2.0])
    up = net("Resize", x, "", net("Cast", scales, to=1), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    head = conv(net, net("Concat", up, fine, axis=1), 48, 17, 1)
    boxes = net("Reshape", head, net.ints(1, 17, -1))
    coarse = net("Reshape", conv(net, x, 24, 17, 1), net.ints(1, 17, -1))
    found = net("Transpose", net("Concat", boxes, coarse, axis=2), perm=[0, 2, 1])
    place, score = net.many("Split", 2, found, net.ints(4, 13), axis=2)
    net.output(place, net("Sigmoid", score), head)
    return net.case()


def segmenter(size: int = 32) -> Case:
    """A U-shaped network: poolings down, transposed convolutions and resizes up, skips."""
    net = Net(4)
    x = net.normal("x", 2, 3, size, size)
    top = net("Relu", conv(net, x, 3, 17, 3))
    middle = net("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2])
    middle = net("LeakyRelu", conv(net, middle, 17, 32, 3), alpha=0.1)
    low = net("AveragePool", middle, kernel_shape=[2, 2], strides=[2, 2])
    low = net("Relu", conv(net, low, 32, 48, 3))
    up = net("ConvTranspose", low, net.weight(48, 32, 2, 2, fan_in=48), net.bias(32),
             strides=[2, 2])  # fmt: skip
    x = net("Relu", conv(net, net("Concat", up, middle, axis=1), 64, 32, 3))
    sizes = net.ints(2, 32, size, size)
    up = net("Resize", x, "", "", sizes, mode="linear",
             coordinate_transformation_mode="half_pixel")  # fmt: skip
    x = net("Relu", conv(net, net("Concat", up, top, axis=1), 49, 16, 3))
    net.output(net("Softmax", conv(net, x, 16, 5, 1), axis=1))
    return net.case()


def convolutions() -> Case:
    """Convolutions over one, two and three axes; grouped, dilated, strided, transposed."""
    net = Net(5)
    for rank, name in enumerate(("line", "plane", "solid"), 1):
        x = net.normal(name, 2, 8, *[9] * rank)
        for given in (
            {},
            {"group": 2, "pads": [1] * 2 * rank},
            {"group": 8, "auto_pad": "SAME_UPPER", "strides": [2] * rank},
            {"dilations": [2] * rank, "pads": [2] * 2 * rank},
            {"auto_pad": "SAME_LOWER", "strides": [2] * rank},
            {"pads": [0] * rank + [1] * rank},
        ):
            weight = net.weight(16, 8 // given.get("group", 1), *[3] * rank)
            net.output(net("Conv", x, weight, net.bias(16), **given))
        for given in ({}, {"strides": [2] * rank, "output_padding": [1] * rank}, {"group": 4}):
            shape = (8, 12 // given.get("group", 1), *[3] * rank)
            weight = net.weight(*shape, fan_in=8 * 3**rank)
            net.output(net("ConvTranspose", x, weight, net.bias(12), **given))
    return net.case()


def shuffled() -> Case:
    """Grouped convolutions with the channels shuffled between them, and a padded count."""
    net = Net(6)
    x = net.normal("x", 2, 24, 10, 10)
    y = net("Relu", conv(net, x, 24, 24, 1, group=3))
    y = net("Reshape", y, net.ints(2, 3, 8, 10, 10))
    y = net("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = net("Reshape", y, net.ints(2, 24, 10, 10))
    y = conv(net, y, 24, 24, 3, group=24)
    net.output(net("Relu", net("Add", conv(net, y, 24, 24, 1, group=3), x)))
    return net.case()
