"""Models of 8-bit integers, in both spellings, against the same in real numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import REWRITES, expected, graph_of, implementations, run
from tests.models import filled
from tests.processor import HAS_VNNI
from tests.zoo.quantized import quantized
from tests.zoo.resnet import resnet
from tightship import _core
from tightship.engine.lower.passes.dequantized import Dequantized, signed
from tightship.engine.lower.pipeline import run_passes
from tightship.frontend.onnx import read_bytes

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

SCALE = np.float32(0.05)
exact = pytest.mark.skipif(not HAS_VNNI, reason="sums of two products saturate without VNNI")


BLOCK = """g (float[1, 8, 10, 10] x) => (float[1, 4] y) {
    q = QuantizeLinear (x, sx, zx)
    d = DequantizeLinear (q, sx, zx)
    w1d = DequantizeLinear <axis = 0> (w1, s1)
    b1d = DequantizeLinear (b1, sb)
    c = Conv <pads = [1, 1, 1, 1]> (d, w1d, b1d)
    r = Relu (c)
    cq = QuantizeLinear (r, sc, zc)
    cd = DequantizeLinear (cq, sc, zc)
    a = Add (cd, d)
    ar = Relu (a)
    aq = QuantizeLinear (ar, sc, zc)
    ad = DequantizeLinear (aq, sc, zc)
    m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (ad)
    mq = QuantizeLinear (m, sc, zc)
    md = DequantizeLinear (mq, sc, zc)
    f = Flatten (md)
    w2d = DequantizeLinear <axis = 0> (w2, s2)
    g = Gemm <transB = 1> (f, w2d, b2)
    gq = QuantizeLinear (g, sg, zg)
    y = DequantizeLinear (gq, sg, zg)
}"""


def integers(*shape):
    """int8 weights that use their range."""
    return np.clip(np.rint(filled(*shape) * 60), -127, 127).astype(np.int8)


def block_graph(**changes):
    """A residual block, a pooling and a classifier as quantizers write them."""
    weights = {
        "sx": SCALE, "zx": np.uint8(120),
        "w1": integers(8, 8, 3, 3), "s1": np.linspace(0.005, 0.01, 8, dtype=np.float32),
        "b1": np.arange(-400, 400, 100, dtype=np.int32), "sb": np.float32(5e-4),
        "sc": np.float32(0.04), "zc": np.uint8(0),
        "w2": integers(4, 200), "s2": np.float32([0.01, 0.02, 0.01, 0.015]), "b2": filled(4),
        "sg": np.float32(2), "zg": np.uint8(100),
    }  # fmt: skip
    return graph_of(BLOCK, **{**weights, **changes})


def assert_within_a_step(found, wanted, step):
    """One step apart at most, and few of many: what rounding the other way makes."""
    assert found.dtype == wanted.dtype
    distance = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    assert distance.max(initial=0) <= 1.001 * step
    assert (distance > 0.001 * step).sum() <= 1 + 0.05 * distance.size


@exact
def test_a_quantized_block_computes_with_integers_alone():
    graph = block_graph()
    assert [operator for operator, *_ in implementations(graph) if operator != "Reorder"] == [
        "QuantizeLinear", "Conv+Relu+QuantizeLinear", "Add+Relu+QuantizeLinear", "MaxPool",
        "Gemm+QuantizeLinear", "DequantizeLinear",
    ]  # fmt: skip
    assert_within_a_step(run(graph)["y"], expected(graph)["y"], 2)


@exact
def test_a_quantized_network_computes_with_integers_alone():
    graph = read_bytes(quantized(resnet(1, 56, blocks=(2, 1)), "qdq").model)
    operators = [operator for operator, *_ in implementations(graph)]
    products = [each for each in operators if each.startswith(("Conv", "Gemm", "MatMul"))]
    assert products
    assert all("QuantizeLinear" in each for each in products)


@exact
@pytest.mark.parametrize("name", [*REWRITES, "onednn", "native", "in_place", "library_layouts"])
def test_a_pass_left_out_changes_no_number_by_more_than_a_step(name):
    graph = block_graph()
    assert_within_a_step(run(graph, (name,))["y"], expected(graph)["y"], 2)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("sink_dequantize", "DequantizeLinear"), ("fuse_quantize", "QuantizeLinear")],
)
def test_a_pass_left_out_leaves_its_part(name, kept):
    def count(without):
        nodes = run_passes(block_graph(), without).nodes
        return sum(node.operator == kept for node in nodes)

    assert count((name,)) > count(())


@pytest.mark.parametrize(
    "changes",
    [
        {"w1": (integers(8, 8, 3, 3).view(np.uint8) ^ 0x80), "z1": np.full(8, 128, np.uint8)},
        {"s1": np.float32(0.01)},
        {"zc": np.uint8(30)},
        {"zx": np.int8(-7), "zc": np.int8(-128), "zg": np.int8(3)},
        {"sx": np.float32([0.05])},
    ],
    ids=["unsigned weights", "one scale", "a zero point inside", "signed", "a scale of rank one"],
)
def test_other_parameters_give_the_same_numbers(changes):
    text = BLOCK.replace("(w1, s1)", "(w1, s1, z1)") if "z1" in changes else BLOCK
    base = block_graph()
    weights = {n: c.array() for n, c in base.constants.items()} | changes
    graph = graph_of(text, **weights)
    assert_within_a_step(run(graph)["y"], expected(graph)["y"], 2)


def test_weights_around_another_zero_point_are_multiplied_as_real_numbers():
    graph = graph_of(
        """g (uint8[1, 4, 5, 5] x) => (float[1, 3, 5, 5] y) {
            d = DequantizeLinear (x, s) w = DequantizeLinear (k, s, z) y = Conv (d, w) }""",
        s=SCALE, k=integers(3, 4, 1, 1).view(np.uint8), z=np.uint8(90),
    )  # fmt: skip
    kernels = {kernel for operator, kernel, _ in implementations(graph) if operator == "Conv"}
    assert kernels == {"onednn"}
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-4)


@st.composite
def convolutions(draw):
    """Text and constants of a quantized convolution, and what the run gives it besides an image."""
    groups = draw(st.sampled_from([1, 1, 2, 4]))
    inputs, outputs = groups * draw(st.integers(1, 5)), groups * draw(st.integers(1, 6))
    kernel = draw(st.integers(1, 3))
    size = draw(st.integers(kernel, 9))
    stride, pad = draw(st.integers(1, 2)), draw(st.integers(0, kernel - 1))
    source = draw(st.sampled_from(["uint8", "int8"]))
    limits = np.iinfo(source)
    zero = draw(st.sampled_from([0, limits.min, limits.max, 17]))
    after = (size + 2 * pad - kernel) // stride + 1
    given = draw(st.sets(st.sampled_from(["sx", "zx", "sw", "sy", "zy", "b"])))
    weights = {
        "sx": SCALE, "zx": np.array(zero, source),
        "w": integers(outputs, inputs // groups, kernel, kernel),
        "sw": np.linspace(0.004, 0.02, outputs, dtype=np.float32), "zw": np.zeros(outputs, np.int8),
        "sy": np.float32(0.11), "zy": np.array(draw(st.sampled_from([0, 3])), source),
        "b": np.arange(outputs, dtype=np.int32) * 37 - 20,
    }  # fmt: skip
    later = {name: np.asarray(weights.pop(name)) for name in sorted(given)}
    more = "".join(
        f", {'float' if x.dtype == np.float32 else x.dtype}[{','.join(map(str, x.shape))}] {name}"
        for name, x in later.items()
    ).replace("[]", "")
    text = f"""g ({source}[2, {inputs}, {size}, {size}] x{more})
        => ({source}[2, {outputs}, {after}, {after}] y) {{
        y = QLinearConv <group = {groups}, strides = [{stride}, {stride}],
            pads = [{pad}, {pad}, {pad}, {pad}]> (x, sx, zx, w, sw, zw, sy, zy, b) }}"""
    return text, weights, later


@exact
@settings(max_examples=60)
@given(convolutions())
def test_any_convolution_of_integers_is_the_one_of_real_numbers_rounded(case):
    text, weights, later = case
    graph = graph_of(text, **weights)
    assert "sw" in later or "numpy" not in {kernel for _, kernel, _ in implementations(graph)}
    x = np.random.default_rng(0).integers(*_range(graph), graph.value("x").shape)
    inputs = {"x": x.astype(graph.value("x").dtype.numpy), **later}
    assert_within_a_step(run(graph, inputs=inputs)["y"], expected(graph, inputs)["y"], 1)


def _range(graph):
    limits = np.iinfo(graph.value("x").dtype.numpy)
    return limits.min, limits.max + 1


@pytest.mark.parametrize("shape", [(3, 16), (2, 5, 16), (1, 16)])
@pytest.mark.parametrize("columns", [1, 7, 32])
def test_a_product_of_integers_by_a_matrix(shape, columns):
    dims = ", ".join(map(str, shape))
    graph = graph_of(
        f"""g (uint8[{dims}] x) => (uint8[{", ".join(map(str, shape[:-1]))}, {columns}] y) {{
            y = QLinearMatMul (x, sx, zx, w, sw, zw, sy, zy) }}""",
        sx=SCALE, zx=np.uint8(100), w=integers(16, columns), sw=np.float32(0.02), zw=np.int8(0),
        sy=np.float32(0.2), zy=np.uint8(77),
    )  # fmt: skip
    inputs = {"x": np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)}
    operators = {operator for operator, *_ in implementations(graph)}
    assert ("MatMul+QuantizeLinear" in operators) == HAS_VNNI
    assert_within_a_step(run(graph, inputs=inputs)["y"], expected(graph, inputs)["y"], 1)


def test_integers_that_wait_for_a_late_reader_are_not_overwritten():
    graph = graph_of(
        """g (float[1, 8, 6, 6] x) => (float[1, 8, 6, 6] y) {
            q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)
            a = Relu (x) b = Neg (a) c = Relu (b) e = Exp (c)
            p = QuantizeLinear (e, s, z) o = DequantizeLinear (p, s, z)
            t = Add (o, d) u = QuantizeLinear (t, s, z) v = DequantizeLinear (u, s, z)
            w = DequantizeLinear (k, s) h = Conv (d, w) y = Add (h, v) }""",
        s=SCALE, z=np.uint8(128), k=integers(8, 8, 1, 1),
    )  # fmt: skip
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], atol=0.051)


def test_real_numbers_are_made_once_for_all_who_ask():
    graph = graph_of(
        """g (uint8[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
            d = DequantizeLinear (x, s) y = Exp (d) z = Sqrt (d) }""",
        s=SCALE,
    )
    found = [operator for operator, *_ in implementations(graph)]
    assert found.count("DequantizeLinear") == 1


def test_moving_operators_move_integers():
    graph = graph_of(
        """g (uint8[2, 4, 6, 6] x) => (uint8[2, 9, 4] y) {
            d = DequantizeLinear (x, s) m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (d)
            t = Transpose <perm = [0, 2, 3, 1]> (m) r = Reshape (t, shape)
            y = QuantizeLinear (r, s) }""",
        s=SCALE, shape=np.array([2, 9, 4]),
    )  # fmt: skip
    operators = {operator for operator, *_ in implementations(graph)}
    assert not operators & {"DequantizeLinear", "QuantizeLinear"}
    inputs = {"x": np.random.default_rng(2).integers(0, 256, (2, 4, 6, 6)).astype(np.uint8)}
    assert (run(graph, inputs=inputs)["y"] == expected(graph, inputs)["y"]).all()


def test_a_folded_constant_knows_its_integers():
    graph = run_passes(block_graph(), ())
    (constant,) = (
        c for c in graph.constants.values() if isinstance(c, Dequantized) and c.axis == 0
        and c.shape == (8, 8, 3, 3)
    )  # fmt: skip
    found = signed(constant)
    assert found is not None
    weights, zero = found
    assert zero == 0
    assert weights.array().dtype == np.int8
    scale = np.linspace(0.005, 0.01, 8, dtype=np.float32).reshape(8, 1, 1, 1)
    np.testing.assert_allclose(constant.array(), weights.array() * scale)


def test_an_addition_whose_sum_is_read_as_real_numbers_too_keeps_its_activation():
    graph = graph_of(
        """g (uint8[1, 4, 3, 3] p, uint8[1, 4, 3, 3] q)
            => (uint8[1, 4, 3, 3] y, float[1, 4, 3, 3] z) {
            a = DequantizeLinear (p, s, o) b = DequantizeLinear (q, s, o)
            t = Add (a, b) r = Relu (t) y = QuantizeLinear (r, s, o) z = Exp (r) }""",
        s=SCALE, o=np.uint8(128),
    )  # fmt: skip
    random = np.random.default_rng(3)
    inputs = {n: random.integers(0, 256, (1, 4, 3, 3)).astype(np.uint8) for n in "pq"}
    found, wanted = run(graph, inputs=inputs), expected(graph, inputs)
    assert (found["y"] == wanted["y"]).all()
    np.testing.assert_allclose(found["z"], wanted["z"], rtol=1e-5)
