"""Half-precision models as float32 inside."""

import ml_dtypes
import numpy as np
import pytest
from onnx import defs

from tests.engine.graphs import (
    assert_close,
    graph_of,
    implementations,
    inputs_of,
    operators,
    prepared,
    run,
)
from tests.models import filled, parse
from tests.processor import PRODUCT
from tightship import _core
from tightship.engine.lower.passes.widen_floats import widen_floats
from tightship.frontend.onnx import read_bytes
from tightship.graph import DType
from tightship.graph.operators import Category, Half, rows

HALF = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


UNARY = [
    name
    for name, row in rows().items()
    if (row.category, row.half, row.reads[0]) == (Category.ELEMENTWISE, Half.FLOAT32, "1")
]


def block(kind, **changes):
    """A convolution, a normalization, attention-like products and an embedding, in halves."""
    dtype = HALF[kind]
    weights = {
        "w": filled(8, 3, 3, 3).astype(dtype), "b": filled(8).astype(dtype),
        "g": filled(36).astype(dtype), "h": filled(36).astype(dtype),
        "k": (filled(36, 20) / 6).astype(dtype), "table": filled(50, 20).astype(dtype),
        "shape": np.array([1, 8, 36]), "half": np.array(0.5, dtype),
    } | changes  # fmt: skip
    text = f"""g ({kind}[1, 3, 6, 6] x, int64[1, 8] ids) => ({kind}[1, 8, 20] y) {{
            c = Conv <pads = [1, 1, 1, 1]> (x, w, b) r = Relu (c) f = Reshape (r, shape)
            n = LayerNormalization <axis = -1> (f, g, h) m = MatMul (n, k)
            e = Gather (table, ids) a = Add (m, e) s = Mul (a, half) y = Softmax (s) }}"""
    header = '<ir_version: 10, opset_import: ["": 22]>'
    return read_bytes(parse(text, header, **weights).SerializeToString())


def feeds(graph):
    ids = np.random.default_rng(0).integers(0, 50, (1, 8))
    return inputs_of(graph) | {"ids": ids}


@pytest.mark.parametrize("kind", HALF)
def test_halves_give_what_float32_gives_of_the_same_numbers(kind):
    graph = block(kind)
    inputs = feeds(graph)
    wide = {name: c.array() for name, c in graph.constants.items()}
    real = graph_of(
        """g (float[1, 3, 6, 6] x, int64[1, 8] ids) => (float[1, 8, 20] y) {
            c = Conv <pads = [1, 1, 1, 1]> (x, w, b) r = Relu (c) f = Reshape (r, shape)
            n = LayerNormalization <axis = -1> (f, g, h) m = MatMul (n, k)
            e = Gather (table, ids) a = Add (m, e) s = Mul (a, half) y = Softmax (s) }""",
        **{n: a.astype(np.float32) if a.dtype.itemsize == 2 else a for n, a in wide.items()},
    )
    wanted = run(real, inputs={**inputs, "x": inputs["x"].astype(np.float32)})["y"]
    found = run(graph, inputs=inputs)["y"]
    assert found.dtype == HALF[kind]
    np.testing.assert_allclose(
        found.astype(np.float32), wanted, rtol=2e-2 if kind[0] == "b" else 2e-3
    )


@pytest.mark.parametrize("kind", HALF)
def test_halves_run_on_the_kernels_of_float32(kind):
    found = implementations(block(kind))
    assert {kernel for operator, kernel, _ in found} <= {"onednn", "native", PRODUCT}
    casts = [operator for operator, *_ in found if operator == "Cast"]
    assert len(casts) == 3, "of the input, of what is looked up, of the output"


def test_without_the_pass_halves_stay_halves():
    graph = block("float16")
    inputs = feeds(graph)
    found, narrow = (run(graph, without, inputs)["y"] for without in ((), ("widen_floats",)))
    np.testing.assert_allclose(found.astype(np.float32), narrow.astype(np.float32), rtol=0.05)


def test_a_value_read_both_ways_is_rounded_once():
    graph = graph_of(
        """g (float16[4, 4] x) => (float16[4, 4] y, float16[4, 4] z, int64[2, n] i) {
            y = MatMul (x, x) z = Sqrt (y) i = NonZero (y) }"""
    )
    found = operators(widen_floats(graph))
    assert sorted(found) == ["Cast", "Cast", "Cast", "MatMul", "NonZero", "Sqrt"]
    x = np.linspace(0, 2, 16, dtype=np.float16).reshape(4, 4)
    np.testing.assert_allclose(run(graph, inputs={"x": x})["y"], x @ x, rtol=2e-3)


def test_only_a_conversion_from_float32_rounds():
    graph = graph_of(
        """g (float16[4, 4] x) => (float16[4, 4] y, float[4, 4] z) {
            p = MatMul (x, x) same = Cast <to = 10> (p) wide = Cast <to = 1> (same)
            s = Softmax (wide) h = CastLike (s, x) like = CastLike (h, x)
            y = MatMul (like, x) z = Cast <to = 1> (like) }"""
    )
    found = operators(widen_floats(graph))
    assert found.count("Cast") == 3, "of the input, of what was rounded, and of the output"
    assert found.count("CastLike") == 1
    x = np.linspace(-1, 2, 16, dtype=np.float16).reshape(4, 4)
    product = x.astype(np.float64) @ x
    e = np.exp(product - product.max(-1, keepdims=True))
    rounded = (e / e.sum(-1, keepdims=True)).astype(np.float16).astype(np.float64)
    outputs = run(graph, inputs={"x": x})
    np.testing.assert_array_equal(outputs["z"], rounded)
    np.testing.assert_allclose(outputs["y"], rounded @ x, rtol=2.0**-11)


@pytest.mark.parametrize(
    "text",
    [
        "g (float[4] x) => (float[4] y) { y = Exp (x) }",
        "g (float[4, 4] x) => (float[4, 4] y) { y = MatMul (x, x) }",
        "g (float16[4] x) => (float16[4] y) { y = Exp (x) }",
    ],
)
def test_a_graph_without_products_of_halves_is_left_as_it_is(text):
    graph = graph_of(text)
    assert widen_floats(graph) is graph


def test_tables_are_looked_up_as_they_are_stored():
    graph = widen_floats(block("float16"))
    assert graph.constants["table"].dtype is DType.FLOAT16
    assert graph.constants["k.float32"].dtype is DType.FLOAT32
    assert "k" not in graph.constants


def test_an_output_that_is_an_input_stays_one():
    graph = graph_of("g (float16[4] x) => (float16[4] y) { a = Identity (x) y = Reshape (a, s) }",
                     s=np.array([4]))  # fmt: skip
    x = np.float16([1, 2, 3, 65504])
    assert_close(run(graph, inputs={"x": x}), {"y": x})


@pytest.mark.parametrize("kind", HALF)
def test_products_take_weights_as_they_are_stored_where_the_processor_can(kind):
    if not _core.HAS_ONEDNN:
        pytest.skip("built without oneDNN")
    plan = prepared(block(kind)).plan
    products = [s.implementation for s in plan.steps if s.operator[:4] in ("Conv", "MatM")]
    wide = prepared(block(kind), ("widen_floats",)).plan
    assert products
    if all("fp16" in name or "amx" in name or "bf16" in name for name in products):
        assert plan.weights_bytes <= 1.3 * wide.weights_bytes


@pytest.mark.parametrize("operator", UNARY)
def test_a_function_of_an_element_joins_the_product_in_float32(operator):
    version = max(20, defs.get_schema(operator).since_version)
    graph = graph_of(
        f"g (float16[4, 4] x) => (float16[4, 4] y) {{ p = MatMul (x, x) y = {operator} (p) }}",
        header=f'<ir_version: 10, opset_import: ["": {version}]>',
    )
    assert operators(widen_floats(graph)) == ["Cast", "MatMul", operator, "Cast"]
    x = {"x": np.full((4, 4), 0.3, np.float16)}
    wide, narrow = (run(graph, without, x)["y"] for without in ((), ("widen_floats",)))
    np.testing.assert_allclose(wide, narrow, rtol=4e-3)


@pytest.mark.parametrize(
    "body",
    [
        "m = Dropout (p)",
        'm = Einsum <equation = "ij,jk->ik"> (p, x)',
        "m = CumSum (p, one)",
        "s = ReduceL1 <keepdims = 1> (p, ones) m = Mul (p, s)",
    ],
)
def test_nothing_is_rounded_between_two_products(body):
    graph = graph_of(
        "g (float16[4, 4] x) => (float16[4, 4] y) "
        f"{{ p = MatMul (x, x) {body} y = MatMul (m, x) }}",
        one=np.array(1), ones=np.array([1]),
    )  # fmt: skip
    assert operators(widen_floats(graph)).count("Cast") == 2
    x = {"x": np.full((4, 4), 0.3, np.float16)}
    wide, narrow = (run(graph, without, x)["y"] for without in ((), ("widen_floats",)))
    np.testing.assert_allclose(wide, narrow, rtol=4e-3)
