"""Convolutions of single pixels between row-major values, which become products."""

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tightship import _core
from tightship.engine.activations import FLOAT32_PRODUCTS
from tightship.engine.lower.passes.fold_constants import fold_constants
from tightship.engine.lower.passes.multiply_pixels import PIXELS_MIN, multiply_pixels
from tightship.engine.lower.passes.sink_dequantize import sink_dequantize
from tightship.engine.lower.selection import rewritten
from tightship.engine.lower.steps import layouts
from tightship.engine.lower.steps.layouts import AMX, AVX2, AVX512

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="products are oneDNN's")


def net(body, image=(2, 5, 12, 12), outputs=7, kernel=(1, 1), result=None):
    random = np.random.default_rng(0)
    result = result or (image[0], outputs, *image[2:])
    types = [", ".join(map(str, dims)) for dims in (image, result)]
    return graph_of(
        f"g (float[{types[0]}] x) => (float[{types[1]}] y) {{ {body} }}",
        w=random.standard_normal((outputs, image[1], *kernel), np.float32),
        b=random.standard_normal(outputs, np.float32),
        v=random.standard_normal((outputs, outputs, *kernel), np.float32),
        s=np.float32(3.0),
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("y = Conv (x, w)", ["Reshape", "MatMul", "Reshape"]),
        ("y = Conv (x, w, b)", ["Reshape", "MatMul", "Add", "Reshape"]),
        (
            "c = Conv (x, w, b) r = Relu (c) y = Mul (r, s)",
            ["Reshape", "MatMul", "Add", "Relu", "Mul", "Reshape"],
        ),
        (
            "c = Conv (x, w) d = Relu (c) y = Conv (d, v, b)",
            ["Reshape", "MatMul", "Relu", "Reshape", "Reshape", "MatMul", "Add", "Reshape"],
        ),
        (
            "c = Conv (x, w) d = Relu (c) e = Sigmoid (c) y = Mul (d, e)",
            ["Reshape", "MatMul", "Reshape", "Relu", "Sigmoid", "Mul"],
        ),
    ],
)
def test_a_lone_convolution_is_a_product(body, found):
    graph = net(body)
    multiplied = multiply_pixels(graph)
    assert operators(multiplied) == found
    assert_close(run(multiplied), expected(graph))


@pytest.mark.parametrize("image", [(1, 3, PIXELS_MIN), (1, 3, 4, 8, 8), (3, 4, 1, PIXELS_MIN)])
def test_images_may_have_any_number_of_axes(image):
    graph = net("y = Conv (x, w, b)", image, kernel=(1,) * (len(image) - 2))
    assert "MatMul" in operators(multiply_pixels(graph))
    assert_close(run(multiply_pixels(graph)), expected(graph))


@pytest.mark.parametrize(
    "graph",
    [
        net("y = Conv <pads = [1, 1, 1, 1]> (x, w)", result=(2, 7, 14, 14)),
        net("y = Conv <strides = [2, 2]> (x, w)", (2, 5, 24, 24), result=(2, 7, 12, 12)),
        net("y = Conv (x, w)", (2, 5, 11, 11)),
        net("y = Conv <pads = [1, 1, 1, 1]> (x, w)", kernel=(3, 3)),
        net("p = MaxPool <kernel_shape = [1, 1]> (x) y = Conv (p, w)"),
        net("c = Conv (x, w) r = Relu (c) y = AveragePool <kernel_shape = [1, 1]> (r)"),
        net("n = Neg (x) p = LRN <size = 3> (x) c = Conv (n, w) d = Conv (p, w) y = Add (c, d)"),
        net("t = Identity (w) y = Conv (x, t)"),
    ],
)
def test_other_convolutions_stay(graph):
    assert operators(multiply_pixels(graph)) == operators(graph)
    assert_close(run(multiply_pixels(graph)), expected(graph))


def test_what_a_reshape_parts_is_apart():
    graph = net(
        "p = MaxPool <kernel_shape = [1, 1]> (x) q = Transpose <perm = [0, 1, 3, 2]> (p)"
        "y = Conv (q, w)"
    )
    assert operators(multiply_pixels(graph)) == [
        "MaxPool", "Transpose", "Reshape", "MatMul", "Reshape",
    ]  # fmt: skip
    assert_close(run(multiply_pixels(graph)), expected(graph))


def test_a_convolution_of_integers_stays():
    random = np.random.default_rng(0)
    graph = graph_of(
        "g (uint8[1, 5, 12, 12] x) => (uint8[1, 7, 12, 12] y) {"
        " d = DequantizeLinear (x, s, z) w = DequantizeLinear (q, s) c = Conv (d, w)"
        " y = QuantizeLinear (c, t, z) }",
        q=random.integers(-127, 127, (7, 5, 1, 1), np.int8),
        s=np.float32(0.02),
        t=np.float32(1.0),
        z=np.uint8(120),
    )
    found = operators(multiply_pixels(sink_dequantize(fold_constants(graph))))
    assert found == ["DequantizeLinear", "Conv", "QuantizeLinear"]


@pytest.mark.parametrize(
    ("isa", "is_product"), [(AVX512, True), (AVX512 | AMX, False), (AVX2, False)]
)
def test_tiles_and_narrow_registers_convolve(monkeypatch, isa, is_product):
    monkeypatch.setattr(layouts, "onednn_cpu_isa", lambda: isa)
    rewriting = rewritten(net("y = Conv (x, w)"))
    assert ("MatMul" in operators(rewriting)) == is_product
    assert "MatMul" not in operators(rewritten(net("y = Conv (x, w)"), [FLOAT32_PRODUCTS]))
