"""Small networks to train, a member of each family, and what they are fed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper, parser

Array = NDArray[Any]


@dataclass(frozen=True)
class Net:
    """A model, its loss, and the inputs of a step; labels among them."""

    model: bytes
    loss: str
    feeds: dict[str, Array]


def net(text: str, loss: str, feeds: dict[str, Array], **shapes: tuple[int, ...]) -> Net:
    """A model in ONNX's text form; weights of the given shapes, scales of one axis near 1."""
    random = np.random.default_rng(5)
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    for name, shape in shapes.items():
        spread = 1 / np.sqrt(max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.1
        array = random.standard_normal(shape) * spread
        if name.startswith(("scale", "variance")):
            array = 1 + 0.1 * np.abs(array)
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return Net(model.SerializeToString(), loss, feeds)


def floats(*shape: int) -> Array:
    """An input."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def labels(classes: int, *shape: int) -> Array:
    """Classes."""
    return np.random.default_rng(8).integers(0, classes, shape)


def mlp() -> Net:
    """Two layers, batch 8."""
    return net(
        """mlp (float[8,10] x) => (float[8,4] y) {
            h = Gemm (x, w1, b1)
            g = Relu (h)
            y = Gemm <transB = 1> (g, w2, b2)
        }""",
        "cross_entropy",
        {"x": floats(8, 10), "labels": labels(4, 8)},
        w1=(10, 16), b1=(16,), w2=(4, 16), b2=(4,),
    )  # fmt: skip


def cnn() -> Net:
    """Convolutions, batch normalizations, both kinds of pooling, and a sum around a layer."""
    return net(
        """cnn (float[4,3,12,12] x) => (float[4,5] y) {
            a = Conv <pads = [1, 1, 1, 1]> (x, w1)
            b = BatchNormalization <momentum = 0.8> (a, scale1, b1, mean1, variance1)
            c = Relu (b)
            d = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (c)
            e = Conv <pads = [1, 1, 1, 1]> (d, w2)
            f = BatchNormalization (e, scale2, b2, mean2, variance2)
            g = Add (f, d)
            h = Relu (g)
            i = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (h)
            j = Conv <strides = [2, 2]> (i, w3, b3)
            k = GlobalAveragePool (j)
            l = Flatten (k)
            y = Gemm <transB = 1> (l, w4, b4)
        }""",
        "cross_entropy",
        {"x": floats(4, 3, 12, 12), "labels": labels(5, 4)},
        w1=(16, 3, 3, 3), scale1=(16,), b1=(16,), mean1=(16,), variance1=(16,),
        w2=(16, 16, 3, 3), scale2=(16,), b2=(16,), mean2=(16,), variance2=(16,),
        w3=(32, 16, 1, 1), b3=(32,), w4=(5, 32), b4=(5,),
    )  # fmt: skip


def transformer() -> Net:
    """Words and places, one layer with two heads, a GELU, and a row of scores for each word."""
    return net(
        """transformer (int64[2,6] words) => (float[12,11] y)
            <int64[4] apart = {2, 6, 2, 8}, int64[3] joined = {2, 6, 16},
             int64[2] rows = {12, 11}, float root = {0.3535534}> {
            e = Gather (words_table, words)
            x = Add (e, places_table)
            n = LayerNormalization <axis = -1> (x, scale1, b1)
            q0 = MatMul (n, wq)
            k0 = MatMul (n, wk)
            v0 = MatMul (n, wv)
            q1 = Reshape (q0, apart)
            k1 = Reshape (k0, apart)
            v1 = Reshape (v0, apart)
            q = Transpose <perm = [0, 2, 1, 3]> (q1)
            k = Transpose <perm = [0, 2, 3, 1]> (k1)
            v = Transpose <perm = [0, 2, 1, 3]> (v1)
            s0 = MatMul (q, k)
            s = Mul (s0, root)
            p = Softmax <axis = -1> (s)
            m0 = MatMul (p, v)
            m1 = Transpose <perm = [0, 2, 1, 3]> (m0)
            m2 = Reshape (m1, joined)
            m3 = MatMul (m2, wo)
            m = Add (m3, x)
            o = LayerNormalization <axis = -1> (m, scale2, b2)
            u0 = MatMul (o, wu)
            u1 = Add (u0, bu)
            u = Gelu <approximate = "tanh"> (u1)
            d0 = MatMul (u, wd)
            d = Add (d0, m)
            z = MatMul (d, wz)
            y = Reshape (z, rows)
        }""",
        "cross_entropy",
        {"words": labels(11, 2, 6), "labels": labels(11, 12)},
        words_table=(11, 16), places_table=(6, 16), scale1=(16,), b1=(16,),
        wq=(16, 16), wk=(16, 16), wv=(16, 16), wo=(16, 16), scale2=(16,), b2=(16,),
        wu=(16, 32), bu=(32,), wd=(32, 16), wz=(16, 11),
    )  # fmt: skip


def lstm() -> Net:
    """An LSTM over five steps, whose last state is compared with numbers."""
    return net(
        """lstm (float[5,3,4] x) => (float[3,2] y) <int64[1] first = {0}> {
            states, h, c = LSTM <hidden_size = 6> (x, w, r, b)
            last = Squeeze (h, first)
            y = Gemm (last, w2, b2)
        }""",
        "squared_error",
        {"x": floats(5, 3, 4), "labels": floats(3, 2)},
        w=(1, 24, 4), r=(1, 24, 6), b=(1, 48), w2=(6, 2), b2=(2,),
    )  # fmt: skip


def both_ways() -> Net:
    """An LSTM and a GRU in both directions, whose last states are compared with numbers."""
    return net(
        """both_ways (float[5,3,4] x) => (float[3,2] y)
            <int64[3] joined = {5, 3, 12}, int64[2] rows = {3, 8}> {
            a = LSTM <hidden_size = 6, direction = "bidirectional"> (x, w, r, b)
            turned = Transpose <perm = [0, 2, 1, 3]> (a)
            row = Reshape (turned, joined)
            c, last = GRU <hidden_size = 4, direction = "bidirectional",
                linear_before_reset = 1> (row, w1, r1, b1)
            by_row = Transpose <perm = [1, 0, 2]> (last)
            flat = Reshape (by_row, rows)
            y = Gemm (flat, w2, b2)
        }""",
        "squared_error",
        {"x": floats(5, 3, 4), "labels": floats(3, 2)},
        w=(2, 24, 4), r=(2, 24, 6), b=(2, 48), w1=(2, 12, 12), r1=(2, 12, 4), b1=(2, 24),
        w2=(8, 2), b2=(2,),
    )  # fmt: skip


def lookup() -> Net:
    """Few words of many: the gradient of their table is larger than all else."""
    return net(
        """lookup (int64[2,2] words) => (float[4,6] y) <int64[2] rows = {4, 16}> {
            e = Gather (table, words)
            r = Reshape (e, rows)
            h = Gemm (r, wide, b)
            g = Tanh (h)
            y = Gemm <transB = 1> (g, narrow)
        }""",
        "cross_entropy",
        {"words": labels(50000, 2, 2), "labels": labels(6, 4)},
        table=(50000, 16), wide=(16, 8), b=(8,), narrow=(6, 8),
    )  # fmt: skip


def tied() -> Net:
    """Scores by the matrix that words are looked up in: its gradient is a sum."""
    return net(
        """tied (int64[2,2] words) => (float[4,40000] y) <int64[2] rows = {4, 32}> {
            e = Gather (table, words)
            r = Reshape (e, rows)
            h = Gemm (r, w, b)
            g = Tanh (h)
            t = Transpose <perm = [1, 0]> (table)
            y = MatMul (g, t)
        }""",
        "cross_entropy",
        {"words": labels(40000, 2, 2), "labels": labels(40000, 4)},
        table=(40000, 32), w=(32, 32), b=(32,),
    )  # fmt: skip


NETS = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
    "lstm": lstm,
    "both_ways": both_ways,
    "lookup": lookup,
    "tied": tied,
}
