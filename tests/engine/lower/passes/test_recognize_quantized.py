"""Dynamically quantized layers, as ONNX Runtime's quantizer spells them."""

import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, implementations, inputs_of, operators, run
from tests.models import filled
from tests.processor import HAS_VNNI
from tightship import _core
from tightship.engine.lower.pipeline import run_passes

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

LAYER = """g (float[2, 5, 24] x) => (float[2, 5, 10] y) {
    xq, sx, zx = DynamicQuantizeLinear (x)
    k = Mul (sx, sw)
    s = MatMulInteger (xq, w, zx, zw)
    c = Cast <to = 1> (s)
    r = Mul (c, k)
    a = Add (b, r)
    y = Relu (a)
}"""
CONVOLUTION = """g (float[1, 3, 9, 9] x) => (float[1, 8, 9, 9] y) {
    xq, sx, zx = DynamicQuantizeLinear (x)
    k = Mul (sx, sw)
    s = ConvInteger <pads = [1, 1, 1, 1]> (xq, w, zx, zw)
    c = Cast <to = 1> (s)
    r = Mul (c, k)
    y = Add (r, b)
}"""


ONE = np.float32(0.01)
PER_COLUMN = np.linspace(0.005, 0.02, 10, dtype=np.float32)


def integers(dtype, *shape):
    limits = np.iinfo(dtype)
    return np.clip(filled(*shape) * 70 + (limits.max + limits.min) / 2, limits.min, limits.max
                   ).astype(dtype)  # fmt: skip


def layer(dtype=np.int8, scale=ONE, zero=0, text=LAYER):
    zeros = np.full(np.shape(scale), zero, dtype)
    return graph_of(text, w=integers(dtype, 24, 10), sw=scale, zw=zeros, b=filled(10))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": PER_COLUMN},
        {"zero": 3},
        {"zero": -5, "scale": PER_COLUMN},
        {"dtype": np.uint8, "zero": 128},
        {"dtype": np.uint8, "zero": 117},
        {"text": LAYER.replace("(sx, sw)", "(sw, sx)").replace("(c, k)", "(k, c)")},
    ],
    ids=["int8", "a scale each", "a zero point", "both", "uint8", "uint8 off centre", "turned"],
)
def test_a_layer_is_one_product_of_integers(options):
    graph = layer(**options)
    product = ["MatMul+Relu"] if HAS_VNNI else ["DequantizeLinear", "MatMul+Relu"]
    assert [operator for operator, *_ in implementations(graph)] == [
        "DynamicQuantizeLinear", "Cast", *product,
    ]  # fmt: skip
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-4)


def test_layers_share_what_they_read():
    text = LAYER.replace("y = Relu (a)", """t = Mul (sx, sw) u = MatMulInteger (xq, w, zx, zw)
        v = Cast <to = 1> (u) h = Mul (v, t) y = Add (a, h)""")  # fmt: skip
    found = operators(run_passes(layer(text=text), ()))
    assert (found.count("Dequantize"), found.count("Cast")) == (1, 1)
    np.testing.assert_allclose(
        run(layer(text=text))["y"], expected(layer(text=text))["y"], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    "text",
    [
        LAYER.replace("y = Relu (a)", "e = Cast <to = 1> (s) z = Add (a, e) y = Relu (z)"),
        LAYER.replace("k = Mul (sx, sw)", "k = Add (sx, sw)"),
        LAYER.replace("(xq, w, zx, zw)", "(xq, w)"),
    ],
    ids=["sums read twice", "no product of scales", "no zero points"],
)
def test_what_is_no_scaled_product_stays(text):
    graph = layer(text=text)
    assert "MatMulInteger" in operators(run_passes(graph, ()))
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "zero"),
    [(np.int8, 0), (np.int8, -7), (np.uint8, 128), (np.uint8, 9), (np.uint8, 0)],
)
def test_a_convolution_takes_integers_by_weights_around_zero(dtype, zero):
    graph = graph_of(
        CONVOLUTION, w=integers(dtype, 8, 3, 3, 3), sw=np.float32([0.01]), zw=np.array(zero, dtype),
        b=filled(1, 8, 1, 1),
    )  # fmt: skip
    done = [operator for operator, *_ in implementations(graph) if operator != "Reorder"]
    is_beyond = dtype is np.uint8 and zero == 0  # 128 more than weights of int8 is none
    assert ("DequantizeLinear" in done) == (is_beyond or not HAS_VNNI)
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 0), (np.uint8, 117)])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_whole_bias_is_scaled_by_itself(dtype, zero, is_first):
    added = "p, s" if is_first else "s, p"
    text = CONVOLUTION.replace(
        "c = Cast <to = 1> (s)",
        f"""f = Div (b, k) e = Floor (f)
        i = Cast <to = 6> (e) p = Reshape (i, n) t = Add ({added}) c = Cast <to = 1> (t)""",
    )
    graph = graph_of(
        text.replace("Add (r, b)", "Relu (r)"), w=integers(dtype, 8, 3, 3, 3),
        sw=np.float32([0.01]), zw=np.array(zero, dtype), b=filled(8), n=np.array([1, 8, 1, 1]),
    )  # fmt: skip
    assert "ConvInteger" not in operators(run_passes(graph, ()))
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-3)


def test_what_is_added_to_each_pixel_is_no_bias():
    text = CONVOLUTION.replace("c = Cast <to = 1> (s)", "t = Add (s, s) c = Cast <to = 1> (t)")
    graph = graph_of(
        text, w=integers(np.int8, 8, 3, 3, 3), sw=np.float32([0.01]), zw=np.int8(0),
        b=filled(1, 8, 1, 1),
    )  # fmt: skip
    assert "ConvInteger" in operators(run_passes(graph, ()))


@pytest.mark.parametrize("count", [1, 31, 1000, 40_001])
@pytest.mark.parametrize(("slope", "offset"), [(1, 0), (3, 50), (0.1, -7), (0, 0)])
def test_a_tensor_is_quantized_by_its_own_range(count, slope, offset):
    graph = graph_of(f"""g (float[{count}] x) => (uint8[{count}] y, float s, uint8 z) {{
        y, s, z = DynamicQuantizeLinear (x) }}""")
    x = (filled(count) * slope + offset).astype(np.float32)
    found = run(graph, inputs={"x": x})
    wanted = expected(graph, {"x": x})
    assert found["s"] == wanted["s"] or slope == offset == 0
    assert found["z"] == wanted["z"]
    np.testing.assert_array_equal(found["y"], wanted["y"])


def test_results_do_not_depend_on_the_pass():
    graph = layer(scale=PER_COLUMN)
    inputs = inputs_of(graph)
    np.testing.assert_allclose(
        run(graph, inputs=inputs)["y"], run(graph, ("recognize_quantized",), inputs)["y"], atol=1e-4
    )
