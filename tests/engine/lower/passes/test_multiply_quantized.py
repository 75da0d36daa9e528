"""Quantized convolutions of single pixels, which a kernel of our own computes with sums."""

import numpy as np
import pytest

from tests.engine.graphs import expected, node_named, operators, run
from tests.engine.quantized_graphs import OUTPUTS, PRODUCT, SUM, everywhere, inputs, net
from tightship import _core
from tightship.engine.lower import selection
from tightship.engine.lower.passes.multiply_quantized import multiply_quantized
from tightship.engine.lower.pipeline import run_passes
from tightship.engine.lower.selection import rewritten
from tightship.engine.lower.steps import layouts
from tightship.engine.lower.steps.layouts import AMX, AVX512, AVX512_VNNI

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="other products are oneDNN's")


def assert_within_a_step(graph):
    """Results of the kernel, on any processor, are those of NumPy but for numbers at an edge."""
    given = inputs(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "faster_passes", everywhere)
        found = run(graph, inputs=given)["y"]
    wanted = expected(graph, given)["y"]
    assert found.dtype == wanted.dtype
    apart = np.abs(found.astype(int) - wanted.astype(int))
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.01


@pytest.mark.parametrize("ending", ["y = QuantizeLinear (c, ys, yz)",
                                    "a = Relu (c) y = QuantizeLinear (a, ys, yz)"])  # fmt: skip
@pytest.mark.parametrize("result", [np.uint8, np.int8])
def test_a_product_is_rounded_as_it_is_written(ending, result):
    graph = net(f"{PRODUCT} {ending}", (np.uint8, np.uint8, result))
    assert operators(run_passes(graph)) == ["QuantizedRows"]
    assert_within_a_step(graph)


@pytest.mark.parametrize("middle", [np.uint8, np.int8])
@pytest.mark.parametrize("addend", [np.uint8, np.int8])
@pytest.mark.parametrize("result", [np.uint8, np.int8])
@pytest.mark.parametrize("activation", ["Identity", "Relu"])
def test_a_sum_is_computed_with_the_product(middle, addend, result, activation):
    body = f"{SUM} a = {activation} (h) y = QuantizeLinear (a, ys, yz)"
    graph = net(body, (middle, addend, result))
    assert operators(run_passes(graph)) == ["QuantizedRows"]
    assert_within_a_step(graph)


def test_a_relu_before_the_sum_bounds_the_product():
    body = SUM.replace("(c, cs, cz)", "(k, cs, cz)").replace("e =", "k = Relu (c) e =", 1)
    graph = net(f"{body} y = QuantizeLinear (h, ys, yz)")
    assert node_named(run_passes(graph), "QuantizedRows").attributes["product"] == (0, 246)
    assert_within_a_step(graph)


def test_one_scale_may_stand_for_all_weights():
    body = f"{PRODUCT} y = QuantizeLinear (c, ys, yz)".replace("<axis = 0> (q", "(q")
    graph = net(body, ws=np.float32(0.004), wz=np.int8(0))
    assert operators(run_passes(graph)) == ["QuantizedRows"]
    assert_within_a_step(graph)


def test_a_product_with_two_readers_is_written():
    graph = net(f"{SUM} i = QuantizeLinear (h, ys, yz) k = Cast <to = 6> (i)"
                " l = Cast <to = 6> (e) m = Add (k, l) y = Cast <to = 2> (m)")  # fmt: skip
    passed = operators(run_passes(graph))
    assert "QuantizedRows" in passed
    assert "Add+QuantizeLinear" in passed


def test_of_two_products_the_later_one_adds_the_other():
    other = PRODUCT
    for name in "dwbc":
        other = other.replace(f"{name} =", f"{name}{name} =").replace(
            f"({name}, ", f"({name * 2}, "
        )
    other = other.replace("w, b)", "ww, bb)")
    body = (
        f"{PRODUCT} e = QuantizeLinear (c, cs, cz) f = DequantizeLinear (e, cs, cz)"
        f"{other} ee = QuantizeLinear (cc, rs, rz) ff = DequantizeLinear (ee, rs, rz)"
        "h = Add (f, ff) y = QuantizeLinear (h, ys, yz)"
    )
    graph = net(body, p=np.full(OUTPUTS, 100, np.int32))
    assert operators(run_passes(graph, ["common_subexpressions"])) == ["QuantizedRows"] * 2
    assert_within_a_step(graph)


OTHERS = {
    "outputs that fill no tile": net(f"{PRODUCT} y = QuantizeLinear (c, ys, yz)", outputs=63),
    "another activation": net(f"{PRODUCT} l = Exp (c) y = QuantizeLinear (l, ys, yz)"),
    "a stride": net(PRODUCT.replace("Conv (", "Conv <strides = [2, 2]> (")
                    + " y = QuantizeLinear (c, ys, yz)"),
    "padding": net(PRODUCT.replace("Conv (", "Conv <pads = [1, 0, 0, 0]> (")
                   + " y = QuantizeLinear (c, ys, yz)"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_others_stay(case):
    graph = run_passes(OTHERS[case], ["multiply_quantized"])
    assert operators(multiply_quantized(graph)) == operators(graph)


@pytest.mark.parametrize(
    ("isa", "is_ours"), [(AVX512 | AVX512_VNNI, True), (AVX512, False), (0xFFF | AMX, False)]
)
def test_the_library_multiplies_tiles_and_without_vnni(monkeypatch, isa, is_ours):
    monkeypatch.setattr(layouts, "onednn_cpu_isa", lambda: isa)
    graph = net(f"{PRODUCT} y = QuantizeLinear (c, ys, yz)")
    assert ("QuantizedRows" in operators(rewritten(graph))) == is_ours
