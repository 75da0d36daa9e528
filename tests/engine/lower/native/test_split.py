"""Products whose numbers are taken apart for the processor's unit for bfloat16 matrices."""

from collections.abc import Callable

import numpy as np
import pytest

import tightship
from tests.zoo.arena import LARGE, poison
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tightship import _core
from tightship.engine.library import open_library
from tightship.engine.lower.native.split import multiplies_tiles


def has_unit() -> bool:
    """Whether the library is there and the processor has the unit."""
    if not _core.HAS_ONEDNN:
        return False
    open_library()
    return multiplies_tiles()


pytestmark = pytest.mark.skipif(not has_unit(), reason="needs AMX")


def product(rows, depth, columns, **attributes) -> Case:
    net = Net()
    x = net("Relu", net.normal("x", rows, depth))
    shape = (columns, depth) if attributes.get("transB") else (depth, columns)
    net.output(net("Gemm", x, net.weight(*shape), net.bias(columns), **attributes))
    return net.case()


def added(*shape, columns, residual="", then="", **attributes) -> Case:
    """A product, a constant row, perhaps another value, and an activation."""
    net = Net(opset=24 if then == "Swish" else 20)
    x = net("Relu", net.normal("x", *shape))
    y = net("Add", net("MatMul", x, net.weight(shape[-1], columns)), net.bias(columns))
    if residual:
        y = net("Add", y, x if residual == "itself" else net("Abs", net.normal("r", *shape)))
    if then == "Clip":
        y = net("Clip", y, net.scalar(-0.5), net.scalar(0.75))
    elif then:
        y = net(then, y, **attributes)
    net.output(net("Neg", y))
    return net.case()


def conv(shape, outputs, kernel=(1, 1), *, residual=False, then="", **attributes) -> Case:
    """A convolution between two activations, perhaps with a value added."""
    net = Net()
    x = net("Relu", net.normal("x", *shape))
    inputs = shape[1] // attributes.get("group", 1)
    y = net("Conv", x, net.weight(outputs, inputs, *kernel), net.bias(outputs), **attributes)
    if residual:
        y = net("Add", y, net("Abs", net.normal("r", shape[0], outputs, *shape[2:])))
    net.output(net("Neg", net(then, y) if then else y))
    return net.case()


CASES: dict[str, Callable[[], Case]] = {
    "whole tiles": lambda: product(64, 64, 64),
    "parts of tiles": lambda: product(77, 120, 250),
    "one row in a tile": lambda: product(65, 81, 370, transB=1),
    "columns of less than a vector": lambda: product(70, 64, 257),
    "several blocks of rows": lambda: product(256 + 256 + 17, 96, 64),
    "several blocks of depth": lambda: product(66, 3 * 256 + 9, 128),
    "several blocks of both": lambda: product(300, 515, 250),
    "a stack of rows": lambda: added(3, 40, 128, columns=160),
    "a residual": lambda: added(1, 90, 160, columns=160, residual="other"),
    "its operand as residual": lambda: added(1, 90, 300, columns=300, residual="itself"),
    "a residual and limits": lambda: added(80, 300, columns=300, residual="other", then="Clip"),
    "pixels": lambda: conv((1, 80, 9, 11), 128, then="Relu"),
    "pixels of a batch, a residual": lambda: conv((2, 96, 8, 8), 64, residual=True, then="Relu"),
    "of one axis": lambda: conv((2, 64, 50), 64, (1,)),
    "Relu": lambda: added(80, 300, columns=310, then="Relu"),
    "Gelu": lambda: added(80, 300, columns=310, then="Gelu"),
    "Gelu by tanh": lambda: added(80, 300, columns=310, then="Gelu", approximate="tanh"),
    "Swish": lambda: added(80, 300, columns=310, then="Swish"),
}


def kernels_of(model) -> list[str]:
    return [step.implementation for step in model.plan.steps]


@pytest.mark.parametrize("name", CASES)
def test_a_split_product_is_what_onnxruntime_computes(name: str) -> None:
    case = CASES[name]()
    with tightship.load(case.model) as model:
        assert "split" in kernels_of(model), kernels_of(model)
        results = model.run(case.feeds)
        if name != "Swish":  # which ONNX Runtime lacks
            assert_near(results, expected(case.model, case.feeds))
        for byte in (0xFF, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), results)
    for threads in (2, 3):
        with tightship.load(case.model, threads=threads) as model:
            assert "split" in kernels_of(model)
            assert_same_bits(model.run(case.feeds), results)
    with tightship.load(case.model, without=("split_products",)) as model:
        assert "split" not in kernels_of(model)
        assert_near(model.run(case.feeds), results)


def alone(rows: np.ndarray, matrix: np.ndarray) -> Case:
    net = Net()
    net.output(net("MatMul", net.input("x", rows), net.constant(matrix)))
    return net.case()


def exact(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return rows.astype(np.float64) @ matrix.astype(np.float64)


def result_of(case: Case, without: tuple[str, ...] = ()) -> np.ndarray:
    with tightship.load(case.model, without=without) as model:
        assert ("split" in kernels_of(model)) != bool(without)
        return next(iter(model.run(case.feeds).values()))


def test_a_split_product_is_as_near_to_the_truth_as_one_of_float32() -> None:
    random = np.random.default_rng(5)
    rows = random.standard_normal((96, 1024), np.float32)
    matrix = random.standard_normal((1024, 128), np.float32)
    case, truth = alone(rows, matrix), exact(rows, matrix)
    split, plain = (result_of(case, without) for without in ((), ("split_products",)))
    assert np.sqrt(np.mean((split - truth) ** 2)) <= np.sqrt(np.mean((plain - truth) ** 2))


@pytest.mark.parametrize("bits", [0x3FFFFFFF, 0x3F807FFF, 0x3F808000, 0x3F80FFFF, 0x3F7FFFFF])
def test_no_part_of_a_number_is_lost(bits: int) -> None:
    number = np.full((64, 64), bits, np.uint32).view(np.float32)
    result = result_of(alone(number, number))
    assert np.allclose(result, exact(number, number), rtol=64 * 2.0**-24, atol=0)


def test_what_is_not_finite_or_nearly_so_is_what_float32_makes_of_it() -> None:
    random = np.random.default_rng(6)
    rows, matrix = (random.standard_normal(s).astype(np.float32) for s in ((70, 300), (300, 128)))
    matrix[7], matrix[8, 5] = 1.0, np.inf
    rows[3, 7], rows[4, 7], rows[5, 7] = np.inf, -np.inf, np.nan
    rows[6, 7] = np.finfo(np.float32).max  # whose first part, rounded up, is infinite
    rows[7, 7] = 1e-40
    case = alone(rows, matrix)
    split, plain = (result_of(case, without) for without in ((), ("split_products",)))
    assert (np.isposinf(split) == np.isposinf(plain)).all()
    assert (np.isneginf(split) == np.isneginf(plain)).all()
    assert (np.isnan(split) == np.isnan(plain)).all()
    finite = np.isfinite(plain)
    assert np.allclose(split[finite], plain[finite], rtol=1e-4, atol=1e-4)
    assert np.isfinite(split[6]).sum() == 127


@pytest.mark.parametrize(
    "case",
    [
        product(63, 64, 64),
        product(64, 63, 64),
        product(64, 64, 63),
        product(64, 64, 100),
        conv((1, 64, 20, 20), 64, strides=[2, 2]),
        conv((1, 64, 10, 10), 64, (3, 3), pads=[1, 1, 1, 1]),
        conv((1, 128, 10, 10), 128, group=2),
    ],
    ids=["few rows", "shallow", "narrow", "much padding", "strides", "taps", "groups"],
)
def test_other_products_are_left_to_others(case: Case) -> None:
    assert "split" not in [step.implementation for step in tightship.plan(case.model).steps]
