"""Convolutions and products of few rows whose weights are streamed."""

from collections.abc import Callable

import numpy as np
import pytest

import tightship
from tests.processor import needs_avx512
from tests.zoo.arena import LARGE, poison
from tests.zoo.net import Case, Net
from tests.zoo.open_lengths import opened
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tightship.engine.lower.native.split import multiplies_tiles
from tightship.engine.lower.native.streamed import Problem

pytestmark = needs_avx512
DIRECT = ("winograd",)
"""Passes left out: Winograd's algorithm takes convolutions of 3x3 that would stream too."""


def conv(shape, outputs, kernel, *, addend=None, then=None, bias=True, **attributes) -> Case:
    """A convolution between two activations, so that it reads and writes the arena."""
    net = Net()
    x = net("Relu", net.normal("x", *shape))
    depth = shape[1] // attributes.get("group", 1)
    operands = [x, net.weight(outputs, depth, *kernel)] + ([net.bias(outputs)] if bias else [])
    y = net("Conv", *operands, **attributes)
    if addend == "itself":
        y = net("Add", x, y)
    elif addend:
        y = net("Add", y, net("Abs", net.normal("r", *addend)))
    if then == "Clip":
        y = net("Clip", y, net.scalar(-0.5), net.scalar(0.75))
    elif then:
        y = net(then, y)
    net.output(net("Neg", y))
    return net.case()


def product(rows, depth, columns, **attributes) -> Case:
    net = Net()
    x = net("Relu", net.normal("x", rows, depth))
    shape = (columns, depth) if attributes.get("transB") else (depth, columns)
    net.output(net("Gemm", x, net.weight(*shape), net.bias(columns), **attributes))
    return net.case()


def stacked(*shape, columns) -> Case:
    net = Net()
    y = net("MatMul", net.normal("x", *shape), net.weight(shape[-1], columns))
    net.output(net("Relu", net("Add", y, net("Neg", net.normal("r", *shape[:-1], columns)))))
    return net.case()


def added(rows, depth, columns, *, residual=False, then=None) -> Case:
    """A product, a constant row, perhaps another value, and an activation."""
    net = Net()
    y = net("MatMul", net("Relu", net.normal("x", 1, rows, depth)), net.weight(depth, columns))
    y = net("Add", y, net.bias(columns))
    if residual:
        y = net("Add", y, net("Abs", net.normal("r", 1, rows, columns)))
    net.output(net("Neg", net(then, y) if then else y))
    return net.case()


CASES: dict[str, Callable[[], Case]] = {
    "pointwise": lambda: conv((1, 256, 7, 7), 96, (1, 1), then="Relu"),
    "pointwise, no bias": lambda: conv((1, 256, 7, 7), 96, (1, 1), bias=False),
    "of batch 2": lambda: conv((2, 192, 5, 5), 128, (1, 1), then="Clip"),
    "of 60 rows": lambda: conv((1, 160, 6, 10), 128, (1, 1)),
    "with an addend": lambda: conv((1, 256, 7, 7), 96, (1, 1), addend=(1, 96, 7, 7), then="Relu"),
    "with its operand as addend": lambda: conv((1, 160, 7, 7), 160, (1, 1), addend="itself"),
    "its activation apart": lambda: conv(
        (1, 256, 7, 7), 96, (1, 1), addend=(1, 96, 7, 7), then="Sigmoid"
    ),
    "3x3": lambda: conv((1, 160, 7, 7), 128, (3, 3), pads=[1, 1, 1, 1], then="Relu"),
    "3x3, strides": lambda: conv((2, 128, 9, 8), 160, (3, 3), pads=[0, 1, 1, 0], strides=[2, 2]),
    "dilated": lambda: conv((1, 128, 9, 9), 128, (3, 3), dilations=[2, 3], pads=[2, 1, 2, 3]),
    "pointwise, strides": lambda: conv((1, 256, 14, 14), 96, (1, 1), strides=[2, 2]),
    "one pixel": lambda: conv((1, 300, 1, 1), 77, (1, 1), then="Relu"),
    "a kernel as large as the image": lambda: conv((1, 64, 3, 3), 333, (3, 3)),
    "of one axis": lambda: conv((2, 128, 20), 160, (3,), pads=[1, 1]),
    "one row": lambda: product(1, 300, 1000, transB=1),
    "one row, several blocks and a part of one": lambda: product(1, 161, 5 * 32 + 9),
    "two rows, several blocks": lambda: added(2, 260, 9 * 32, residual=True),
    "three rows, shallow": lambda: product(3, 5, 130 * 32),
    "a constant row added": lambda: added(1, 192, 160, then="Relu"),
    "an activation apart": lambda: added(1, 192, 160, residual=True, then="Gelu"),
    "another activation apart": lambda: added(3, 200, 330, then="Tanh"),
    "rows in registers": lambda: product(14, 129, 200),
    "rows by a matrix": lambda: product(30, 224, 96, transB=1),
    "a stack of rows": lambda: stacked(2, 3, 5, 160, columns=128),
}


@pytest.mark.parametrize("name", CASES)
def test_a_streamed_product_is_what_onnxruntime_computes(name: str) -> None:
    case = CASES[name]()
    with tightship.load(case.model, without=DIRECT) as model:
        kernels = [step.implementation for step in model.plan.steps]
        assert "streamed" in kernels, kernels
        results = model.run(case.feeds)
        assert_near(results, expected(case.model, case.feeds))
        for byte in (0xFF, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), results)
    with tightship.load(case.model, threads=2, without=DIRECT) as model:
        assert "streamed" in [step.implementation for step in model.plan.steps]
        assert_same_bits(model.run(case.feeds), results)
    with tightship.load(case.model, without=("stream_weights", *DIRECT)) as model:
        assert "streamed" not in [step.implementation for step in model.plan.steps]
        assert_near(model.run(case.feeds), results)


@pytest.mark.parametrize(
    "case",
    [
        conv((1, 64, 7, 7), 64, (1, 1)),
        conv((1, 256, 9, 9), 96, (1, 1)),
        conv((1, 256, 7, 7), 100, (1, 1)),
        conv((1, 512, 7, 7), 512, (1, 1), group=2),
    ],
    ids=["few weights", "many rows", "part of a block", "groups"],
)
def test_other_products_are_left_to_the_library(case: Case) -> None:
    assert "streamed" not in [step.implementation for step in tightship.plan(case.model).steps]


def test_an_addend_that_dies_is_written_over_and_an_operand_is_not() -> None:
    names = ("with an addend", "with its operand as addend")
    apart, itself = (tightship.plan(CASES[name]().model) for name in names)
    taken = [
        [t.shares_with for t in plan.tensors if t.name.startswith(("add", "relu"))]
        for plan in (apart, itself)
    ]
    assert any(taken[0])
    assert not any(taken[1])


def test_all_weights_are_read_once() -> None:
    ones = (1, 1)
    problem = Problem((1, 96, 64), (7, 7), (7, 7), ones, ones, ones, (0, 0), (96, 1, 1))
    stored, packed = problem.layouts()
    assert (problem.depth, problem.by_block) == (96, False)
    assert packed.size_bytes == stored.size_bytes == 96 * 64 * 4


@pytest.mark.parametrize("batches", [(1, 2, 9), (9, 1, 2)])
@pytest.mark.parametrize("kernel", [1, 3])
def test_weights_are_packed_once_for_all_batches(kernel: int, batches: tuple[int, ...]) -> None:
    if kernel == 1 and multiplies_tiles():
        pytest.skip("tiles take matrices of many rows packed in another layout")
    net = Net()
    x = net("Relu", net.normal("x", 1, 128, 7, 7))
    y = net("Conv", x, net.weight(160, 128, kernel, kernel), net.bias(160), pads=[kernel // 2] * 4)
    net.output(net("Relu", y))
    file = opened(net, {"x": ("batch", 128, 7, 7)})
    feeds = {count: {"x": random_image(count, 128, 7, 7)} for count in batches}
    with tightship.load(file, shapes={"x": (batches[0], 128, 7, 7)}, without=DIRECT) as model:
        is_streamed = "streamed" in [step.implementation for step in model.plan.steps]
        assert is_streamed is (batches[0] == 1)
        held = model.memory_stats().weights_bytes
        for count in batches:
            assert_near(model.run(feeds[count]), expected(file, feeds[count]))
            assert model.memory_stats().weights_bytes == held


def random_image(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)
