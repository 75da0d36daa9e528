"""Products of operands rounded to bfloat16, against float64: their error, and where they are."""

from functools import partial

import numpy as np
import pytest

from tests.engine.graphs import expected, implementations, run
from tests.engine.lower.onednn.test_gradients import assert_bound_and_said, gradients_of
from tests.graph.backward.differences import numbers
from tests.processor import needs_bfloat16
from tightship.engine.lower import selection
from tightship.engine.lower.onednn import halves

ROUNDING = 2.0**-9
"""Largest relative error of a number that is rounded to bfloat16."""
ERROR = 2 * ROUNDING + ROUNDING**2
"""Largest relative error of a product of two such numbers."""

PRODUCTS = {
    "matrix": ("MatMul", ("48,64", "64,40"), "48,40", ""),
    "rows": ("MatMul", ("3,16,64", "64,40"), "3,16,40", ""),
    "stacks": ("MatMul", ("2,3,48,64", "2,3,64,40"), "2,3,48,40", ""),
    "pointwise": ("Conv", ("2,32,9,9", "48,32,1,1"), "2,48,9,9", ""),
    "window": ("Conv", ("2,32,8,9", "48,32,3,3"), "2,48,8,9", "<pads = [1, 1, 1, 1]>"),
    "strides": ("Conv", ("2,32,9,9", "64,32,3,3"), "2,64,4,4", "<strides = [2, 2]>"),
    "first": ("Conv", ("2,3,20,20", "32,3,7,7"), "2,32,14,14", ""),
    "groups": ("Conv", ("2,64,8,8", "64,32,3,3"), "2,64,6,6", "<group = 2>"),
    "line": ("Conv", ("3,32,11", "32,32,3"), "3,32,9", ""),
    "volume": ("Conv", ("2,32,5,6,7", "32,32,3,3,3"), "2,32,3,4,5", ""),
}


def gradients(name, dtype="float"):
    """A product and the gradients of its operands."""
    operator, (a, b), y, how = PRODUCTS[name]
    return gradients_of(
        f"net ({dtype}[{a}] a, {dtype}[{b}] b) => ({dtype}[{y}] y)"
        f" {{ y = {operator} {how} (a, b) }}",
        ["a", "b"],
    )


def of_computed_rows(a, b, y, dtype="float"):
    """A product of rows that a step computes, as one computes its gradient, by an input."""
    return gradients_of(
        f"""net ({dtype}[{a}] a, {dtype}[{b}] b) => ({dtype}[{y}] y) {{
            rows = Add (a, a)
            made = MatMul (rows, b)
            y = Add (made, made)
        }}""",
        ["a", "b"],
    )


@pytest.fixture
def asked(monkeypatch):
    """Kernels are selected for products of rounded operands."""
    given = partial(selection.select, half_products=True)
    monkeypatch.setattr(selection, "select", given)


def products(graph):
    """Implementations of products."""
    names = ("Conv", "ConvGradData", "ConvGradWeights", "Gemm", "MatMul", "TransposedMatMul")
    return [how for name, _, how in implementations(graph) if name in names]


def multiplies_halves(how):
    """Return whether an implementation is of bfloat16, which names of tiles do not say."""
    return "bf16" in how or "amx" in how


def assert_within_rounding(graph, exact, feeds):
    """Results err from those in float64 by what two roundings and sums in float32 allow."""
    found = run(graph, inputs=feeds)
    wide = {name: value.astype(np.float64) for name, value in feeds.items()}
    wanted = expected(exact, wide)
    sizes = expected(exact, {name: np.abs(value) for name, value in wide.items()})
    for name, value in wanted.items():
        assert found[name].dtype == np.float32
        error = np.abs(found[name] - value)
        assert error.max() > 1e-5 * np.abs(value).max()  # no float32 kernel
        np.testing.assert_array_less(error, (ERROR + 1e-5) * sizes[name], err_msg=name)


@needs_bfloat16
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.usefixtures("asked")
def test_a_product_and_its_gradients_err_by_two_roundings(name):
    graph = gradients(name)
    found = products(graph)
    assert len(found) == 3
    assert all(map(multiplies_halves, found))
    assert_bound_and_said(graph)
    assert_within_rounding(graph, gradients(name, "double"), numbers(graph))


@needs_bfloat16
@pytest.mark.parametrize("shapes", [("48,64", "64,400", "48,400"), ("48,400", "400,64", "48,64")])
@pytest.mark.usefixtures("asked")
def test_a_large_weight_is_rounded_in_parts(monkeypatch, shapes):
    """Parts are columns in one direction, and terms of sums in the other."""
    monkeypatch.setattr(halves, "PART_BYTES", 64 * 100 * 2)
    graph = of_computed_rows(*shapes)
    names = [name for name, _, how in implementations(graph) if multiplies_halves(how)]
    assert sorted(names) == ["Gemm"] * 5 + ["MatMul"] * 4
    assert_within_rounding(graph, of_computed_rows(*shapes, "double"), numbers(graph))


@needs_bfloat16
@pytest.mark.usefixtures("asked")
def test_a_part_that_no_kernel_is_fast_for_leaves_no_steps_behind(monkeypatch):
    monkeypatch.setattr(halves, "PART_BYTES", 64)
    monkeypatch.setattr(halves, "fast", lambda _: None)
    graph = of_computed_rows("48,64", "64,40", "48,40")
    steps = implementations(graph)
    assert sum(name == "Reorder" for name, _, _ in steps) == 2  # for the weight's gradient
    assert [multiplies_halves(how) for how in products(graph)] == [False, True, False]


@needs_bfloat16
@pytest.mark.usefixtures("asked")
def test_a_value_is_rounded_once_for_all_products_that_read_it():
    steps = implementations(of_computed_rows("48,64", "64,40", "48,40"))
    assert sum(name == "Reorder" for name, _, _ in steps) == 4  # rows, their gradient, weight twice


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_read_float32_unless_asked(name):
    assert not any(map(multiplies_halves, products(gradients(name))))


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.usefixtures("asked")
def test_another_processor_runs_the_kernels_of_float32(monkeypatch, name):
    monkeypatch.setattr(selection, "multiplies_halves", lambda: False)
    asked = implementations(gradients(name))
    monkeypatch.undo()
    assert asked == implementations(gradients(name))


@pytest.mark.usefixtures("asked")
def test_products_of_few_numbers_are_not_rounded(monkeypatch):
    monkeypatch.setitem(PRODUCTS, "few", ("MatMul", ("48,16", "16,40"), "48,40", ""))
    assert not any(map(multiplies_halves, products(gradients("few"))))
