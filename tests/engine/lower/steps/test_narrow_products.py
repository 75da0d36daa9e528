"""Constants that products multiply by in bfloat16."""

import ml_dtypes
import numpy as np
import pytest

from tests.engine.graphs import graph_of, run
from tests.processor import HAS_BFLOAT16
from tests.zoo.net import Case, Net
from tightship.engine.activations import FLOAT32_PRODUCTS
from tightship.engine.lower.selection import lower
from tightship.engine.lower.steps.narrow_products import narrow_constants
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes

NARROW = (FLOAT32_PRODUCTS,)
needs_products = pytest.mark.skipif(not HAS_BFLOAT16, reason="needs products of bfloat16")
MIXED = """
g (float[32,32] x, int64[4] i) => (float[32,32] y, float[4,32] rows, float[32,32] z)
{
  a = MatMul(x, w)
  rows = Gather(t, i)
  b = MatMul(a, t)
  c = Add(b, s)
  y = MatMul(c, s)
  k = Transpose(u)
  z = MatMul(y, k)
}
"""


def rounded(array: np.ndarray) -> np.ndarray:
    return array.astype(ml_dtypes.bfloat16).astype(np.float64)


def weights(case: Case) -> dict[str, np.ndarray]:
    graph = read_bytes(case.model)
    return {name: constant.array() for name, constant in graph.constants.items()}


def product() -> Case:
    net = Net()
    x = net("Relu", net.normal("x", 5, 96))
    net.output(net("MatMul", x, net.weight(96, 40)))
    return net.case()


@needs_products
def test_both_operands_are_rounded_and_sums_are_float32() -> None:
    case = product()
    (matrix,) = weights(case).values()
    (x,) = case.feeds.values()
    x = np.maximum(x, 0)
    (found,) = run(read_bytes(case.model), NARROW, case.feeds).values()
    near, bound = rounded(x) @ rounded(matrix), 1e-6 * (np.abs(x) @ np.abs(matrix))
    assert (np.abs(found - near) <= bound).all()
    assert (np.abs(found - x.astype(np.float64) @ matrix) > bound).any()


@needs_products
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions_are_near_and_take_half_the_weights(kernel: int, groups: int) -> None:
    net = Net()
    x = net.normal("x", 1, 64, 14, 14)
    y = net("Conv", x, net.weight(128, 64 // groups, kernel, kernel), net.bias(128),
            group=groups, pads=[kernel // 2] * 4)  # fmt: skip
    net.output(net("Relu", y))
    case = net.case()
    graph = read_bytes(case.model)
    exact, found = (run(graph, left_out, case.feeds) for left_out in ((), NARROW))
    for name, values in exact.items():
        apart = np.abs(found[name] - values).max() / np.abs(values).max()
        assert 1e-5 < apart < 2e-2
    plain, half = (
        sum(each.size_bytes for each in lower(graph, without=left_out).weights)
        for left_out in (("winograd",), NARROW)
    )
    assert half - 512 == (plain - 512) / 2  # the bias stays float32


@needs_products
def test_what_others_read_too_stays_float32() -> None:
    arrays = {name: np.ones((32, 32), np.float32) for name in "wtsu"}
    graph = graph_of(MIXED, **arrays)
    found = narrow_constants(graph, use_onednn=True)
    assert found == {"w"}  # `t` is gathered from, `s` is added, and `u` is turned in the run


@needs_products
def test_depthwise_convolutions_stay_float32() -> None:
    net = Net()
    net.output(net("Conv", net.normal("x", 1, 8, 6, 6), net.weight(8, 1, 3, 3), group=8))
    assert not narrow_constants(read_bytes(net.case().model), use_onednn=True)


def test_a_processor_without_such_products_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_bytes(product().model)
    with pytest.raises(InputError, match="AVX-512 BF16 or AMX alone"):
        narrow_constants(graph, use_onednn=False)
    place = "tightship.engine.lower.steps.narrow_products.onednn_cpu_isa"
    monkeypatch.setattr(place, lambda: 0x67)
    with pytest.raises(InputError, match="leave `precision` out"):
        lower(graph, without=NARROW)
