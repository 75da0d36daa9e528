"""Networks whose files leave lengths open, written with the shape arithmetic of exporters."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.zoo.net import IR_VERSION, Net


def text(
    layers: int = 2, hidden: int = 48, heads: int = 4, vocabulary: int = 60, context: int = 64
) -> bytes:
    """GPT-2 as TorchScript exports it: `ids` of [batch, steps], at most `context` steps."""
    net = Net(3, opset=17)
    net.input("ids", np.zeros((1, 1), np.int64))
    steps = _length(net, "ids", 1)
    positions = net("Range", net.constant(np.int64(0)), steps, net.constant(np.int64(1)))
    positions = net("Unsqueeze", positions, net.ints(0))
    words = net("Gather", net.weight(vocabulary, hidden, fan_in=2), "ids")
    x = net("Add", words, net("Gather", net.weight(context, hidden, fan_in=2), positions))
    causal = net.constant(np.tril(np.ones((1, 1, context, context), bool)))
    for _ in range(layers):
        y = _dense(net, _norm(net, x, hidden), hidden, 3 * hidden)
        parts = net.many("Split", 3, y, net.ints(hidden, hidden, hidden), axis=2)
        query, key, value = (_heads(net, part, heads, hidden) for part in parts)
        scores = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net("Div", scores, net.scalar(math.sqrt(hidden // heads)))
        to = net("Unsqueeze", _length(net, scores, 3), net.ints(0))
        rows = net("Slice", causal, net.ints(0), to, net.ints(2), net.ints(1))
        mask = net("Slice", rows, net.ints(0), to, net.ints(3), net.ints(1))
        scores = net("Where", mask, scores, net.scalar(-1e9))
        mixed = net("MatMul", net("Softmax", scores, axis=3), value)
        mixed = net("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = net("Reshape", mixed, _shape(net, mixed, (0, 1), hidden))
        x = net("Add", _dense(net, mixed, hidden, hidden), x)
        inner = net("Relu", _dense(net, _norm(net, x, hidden), hidden, 2 * hidden))
        x = net("Add", x, _dense(net, inner, 2 * hidden, hidden))
    net.output(net("MatMul", _norm(net, x, hidden), net.weight(hidden, vocabulary)))
    return opened(net, {"ids": ("batch", "steps")})


def sentences(
    layers: int = 2, hidden: int = 48, heads: int = 4, vocabulary: int = 60, longest: int = 64
) -> bytes:
    """An encoder that embeds sentences: the mean of what it makes of `ids` where `mask` is 1."""
    net = Net(9, opset=17)
    net.input("ids", np.zeros((1, 1), np.int64))
    net.input("mask", np.ones((1, 1), np.int64))
    steps = _length(net, "ids", 1)
    positions = net("Range", net.constant(np.int64(0)), steps, net.constant(np.int64(1)))
    words = net("Gather", net.weight(vocabulary, hidden, fan_in=2), "ids")
    places = net("Gather", net.weight(longest, hidden, fan_in=2), positions)
    x = _norm(net, net("Add", words, places), hidden)
    kept = net("Cast", net("Unsqueeze", "mask", net.ints(1, 2)), to=1)
    hidden_away = net("Mul", net("Sub", net.scalar(1), kept), net.scalar(-10000))
    for _ in range(layers):
        query, key, value = (
            _heads(net, _dense(net, x, hidden, hidden), heads, hidden) for _ in range(3)
        )
        scores = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net("Add", net("Div", scores, net.scalar(math.sqrt(hidden // heads))), hidden_away)
        mixed = net("MatMul", net("Softmax", scores, axis=3), value)
        mixed = net("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = net("Reshape", mixed, _shape(net, mixed, (0, 1), hidden))
        x = _norm(net, net("Add", _dense(net, mixed, hidden, hidden), x), hidden)
        inner = net("Relu", _dense(net, x, hidden, 4 * hidden))
        x = _norm(net, net("Add", x, _dense(net, inner, 4 * hidden, hidden)), hidden)
    kept = net("Cast", net("Unsqueeze", "mask", net.ints(2)), to=1)
    total = net("ReduceSum", net("Mul", x, kept), net.ints(1), keepdims=0)
    net.output(net("Div", total, net("ReduceSum", kept, net.ints(1), keepdims=0)))
    return opened(net, {"ids": ("batch", "steps"), "mask": ("batch", "steps")})


def sound(channels: int = 16) -> bytes:
    """Strided convolutions along time, `x` of [1, 8, samples], then a mean over what is left."""
    net = Net(4, opset=17)
    net.normal("x", 1, 8, 64)
    x = net("Conv", "x", net.weight(channels, 8, 3), net.bias(channels), pads=[1, 1])
    x = net("Conv", net("Relu", x), net.weight(channels, channels, 3), net.bias(channels),
            pads=[1, 1], strides=[2])  # fmt: skip
    x = net("Transpose", net("Relu", x), perm=[0, 2, 1])
    x = net("Add", net("MatMul", x, net.weight(channels, channels)), net.bias(channels))
    net.output(x, net("ReduceMean", x, axes=[1], keepdims=0))
    return opened(net, {"x": (1, 8, "samples")})


def line(channels: int = 16) -> bytes:
    """A line of text to read: `x` of [batch, 3, 32, width], one row of classes for each column."""
    net = Net(5, opset=17)
    net.normal("x", 1, 3, 32, 40)
    x = "x"
    before = 3
    for _ in range(3):
        x = net("Conv", x, net.weight(channels, before, 3, 3), net.bias(channels),
                pads=[1, 1, 1, 1])  # fmt: skip
        x = net("MaxPool", net("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
        before = channels
    x = net("ReduceMean", x, axes=[2], keepdims=0)
    x = net("Transpose", x, perm=[0, 2, 1])
    x = net("Reshape", x, _shape(net, x, (0, 1), channels))
    net.output(net("Softmax", net("MatMul", x, net.weight(channels, 11)), axis=2))
    return opened(net, {"x": ("batch", 3, 32, "width")})


def picture(channels: int = 16) -> bytes:
    """Text to be found: `x` of [batch, 3, height, width], made smaller and larger again."""
    net = Net(6, opset=17)
    net.normal("x", 1, 3, 8, 40)
    x = net("Conv", "x", net.weight(channels, 3, 3, 3), net.bias(channels), pads=[1, 1, 1, 1],
            strides=[2, 2])  # fmt: skip
    x = net("Relu", x)
    small = net("Conv", x, net.weight(channels, channels, 1, 1), net.bias(channels))
    factors = net.constant(np.array([1, 1, 2, 2], np.float32))
    large = net("Resize", small, "", factors, mode="nearest", nearest_mode="floor",
                coordinate_transformation_mode="asymmetric")  # fmt: skip
    turned = net("ConvTranspose", x, net.weight(channels, 5, 2, 2), strides=[2, 2])
    net.output(net("Sigmoid", net("Concat", large, turned, axis=1)))
    return opened(net, {"x": ("batch", 3, "height", "width")})


def words(channels: int = 16, hidden: int = 12) -> bytes:
    """A line of text read both ways: `x` of [batch, 3, 8, width], the best class of each column."""
    net = Net(7, opset=17)
    net.normal("x", 1, 3, 8, 40)
    x = net("Conv", "x", net.weight(channels, 3, 3, 3), net.bias(channels), auto_pad="SAME_UPPER",
            strides=[4, 2])  # fmt: skip
    x = net("MaxPool", net("Relu", x), kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER")
    x = net("Transpose", net("Squeeze", x, net.ints(2)), perm=[2, 0, 1])
    batch = net("Unsqueeze", _length(net, x, 1), net.ints(0))
    zeros = net("ConstantOfShape", net("Concat", net.ints(2), batch, net.ints(hidden), axis=0))
    y = net("LSTM", x, net.weight(2, 4 * hidden, channels), net.weight(2, 4 * hidden, hidden),
            net.bias(2, 8 * hidden), "", zeros, zeros, hidden_size=hidden,
            direction="bidirectional")  # fmt: skip
    y = net("Reshape", net("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    scores = net("Softmax", net("MatMul", y, net.weight(2 * hidden, 11)), axis=2)
    net.output(net("Cast", net("ArgMax", scores, axis=2, keepdims=0), to=1), scores)
    return opened(net, {"x": ("batch", 3, 8, "width")})


def speech(width: int = 16) -> bytes:
    """Energies of `x` of [1, 8, samples], what each says to all, and where that leads."""
    net = Net(8, opset=18)
    net.normal("x", 1, 8, 64)
    x = net("Pad", net("LpPool", "x", kernel_shape=[4], strides=[2]), net.ints(0, 0, 1, 0, 0, 1))
    x = net("Transpose", x, perm=[2, 0, 1])
    weights = net.weight(1, 3 * width, 8), net.weight(1, 3 * width, width), net.bias(1, 6 * width)
    x, last = net.many("GRU", 2, x, *weights, hidden_size=width, linear_before_reset=1)
    x = net("Transpose", net("Squeeze", x, net.ints(1)), perm=[1, 0, 2])
    scores = net("Softmax", net("Einsum", x, x, equation="btc,bsc->bts"), axis=2)
    mixed = net("Einsum", scores, x, equation="bts,bsc->btc")
    steps = net("Shape", mixed)
    ones = net("ConstantOfShape", net.ints(3), value=numpy_helper.from_array(np.array([1])))
    wanted = net("Concat", net.ints(-1), net("Slice", steps, net.ints(1), net.ints(2)),
                 net.ints(-1), axis=0)  # fmt: skip
    shape = net("Where", net("Equal", wanted, net.ints(-1, -1, -1)), ones, wanted)
    spread = net("Expand", net("Transpose", last, perm=[1, 0, 2]), shape)
    best, _ = net.many("TopK", 2, net("Add", mixed, spread), net.ints(3), axis=2)
    net.output(net("Tile", best, net.ints(1, 2, 1)))
    return opened(net, {"x": (1, 8, "samples")})


def opened(net: Net, shapes: Mapping[str, Sequence[int | str]]) -> bytes:
    """The model with these shapes of its inputs, and no shapes of its outputs."""
    graph = net.graph()
    for value in graph.input:
        helper_type = helper.make_tensor_type_proto(
            value.type.tensor_type.elem_type, shapes[value.name]
        )
        value.type.CopyFrom(helper_type)
    for value in graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", net.opset)], ir_version=IR_VERSION
    )
    serialized: bytes = model.SerializeToString()
    return serialized


def _length(net: Net, x: str, axis: int) -> str:
    return net("Gather", net("Shape", x), net.constant(np.int64(axis)), axis=0)


def _shape(net: Net, x: str, axes: Sequence[int], *last: int) -> str:
    """Some lengths of `x`, then constants."""
    lengths = [net("Unsqueeze", _length(net, x, axis), net.ints(0)) for axis in axes]
    return net("Concat", *lengths, *(net.ints(length) for length in last), axis=0)


def _norm(net: Net, x: str, hidden: int) -> str:
    centred = net("Sub", x, net("ReduceMean", x, axes=[-1]))
    variance = net("ReduceMean", net("Pow", centred, net.scalar(2)), axes=[-1])
    scaled = net("Div", centred, net("Sqrt", net("Add", variance, net.scalar(1e-5))))
    return net("Add", net("Mul", scaled, net.positive(hidden)), net.bias(hidden))


def _dense(net: Net, x: str, before: int, after: int) -> str:
    shape = _shape(net, x, (0, 1), after)
    flat = net("Reshape", x, net.ints(-1, before))
    product = net("Gemm", flat, net.weight(before, after, fan_in=2 * before), net.bias(after))
    return net("Reshape", product, shape)


def _heads(net: Net, x: str, heads: int, hidden: int) -> str:
    apart = net("Reshape", x, _shape(net, x, (0, 1), heads, hidden // heads))
    return net("Transpose", apart, perm=[0, 2, 1, 3])
