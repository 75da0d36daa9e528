"""Convolutions of 3x3 by Winograd's algorithm."""

from collections.abc import Callable

import numpy as np
import pytest

import tightship
from tests.engine.test_native import run_kernel
from tests.processor import needs_avx2
from tests.zoo.arena import LARGE, poison
from tests.zoo.net import Case, Net
from tests.zoo.open_lengths import opened
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tests.zoo.resnet import resnet
from tests.zoo.unet import unet
from tests.zoo.yolo import yolo
from tightship._core import NativeKernel

pytestmark = needs_avx2
WINDOW = (3, 3)
WIDE = 1 << 21
SAME = {"pads": [1, 1, 1, 1]}


def conv(shape: tuple[int, ...], outputs: int, kernel: tuple[int, ...], *, addend: str = "",
         then: str = "", bias: bool = True, **attributes: object) -> Case:  # fmt: skip
    """A convolution in the arena, in a network whose peak leaves room for scratch."""
    net = Net()
    spread_over(net)
    x = net("Relu", net.normal("x", *shape))
    depth = shape[1] // int(attributes.get("group", 1))
    operands = [x, net.weight(outputs, depth, *kernel)] + ([net.bias(outputs)] if bias else [])
    y = net("Conv", *operands, **attributes)
    if addend == "itself":
        y = net("Add", x, y)
    elif addend:
        y = net("Add", y, net("Abs", net.normal("r", *shape)))
    if then == "Clip":
        y = net("Clip", y, net.scalar(-0.5), net.scalar(0.75))
    elif then == "Swish":
        y = net("Mul", y, net("Sigmoid", y))
    elif then:
        y = net(then, y)
    net.output(net("Neg", y))
    return net.case()


def spread_over(net: Net) -> None:
    """Add values of 8 MiB, which die before anything else is computed."""
    wide = net("Exp", net("Neg", net.normal("wide", WIDE)))
    net.output(net("ReduceMax", net("Add", wide, net("Relu", wide)), keepdims=1))


CASES: dict[str, Callable[[], Case]] = {
    "plain": lambda: conv((1, 32, 24, 24), 32, WINDOW, **SAME),
    "no bias": lambda: conv((1, 32, 24, 24), 32, WINDOW, bias=False, **SAME),
    "half a block of outputs": lambda: conv((1, 48, 17, 19), 80, WINDOW, **SAME, then="Relu"),
    "clamped": lambda: conv((1, 64, 13, 30), 64, WINDOW, **SAME, then="Clip"),
    "swish": lambda: conv((1, 64, 20, 20), 32, WINDOW, **SAME, then="Swish"),
    "an addend": lambda: conv((1, 64, 16, 16), 64, WINDOW, **SAME, addend="another", then="Relu"),
    "its operand as addend": lambda: conv((1, 64, 12, 12), 64, WINDOW, **SAME, addend="itself"),
    "of batch 3": lambda: conv((3, 32, 9, 11), 64, WINDOW, **SAME),
    "no pads": lambda: conv((1, 64, 14, 10), 64, WINDOW),
    "pads on one side": lambda: conv((1, 64, 12, 12), 64, WINDOW, pads=[2, 0, 0, 1]),
    "pads of two": lambda: conv((1, 64, 11, 11), 64, WINDOW, pads=[2, 2, 2, 2]),
    "an image smaller than a tile": lambda: conv((4, 256, 4, 3), 128, WINDOW, **SAME),
    "a few deep pixels": lambda: conv((1, 176, 7, 7), 160, WINDOW, **SAME),
}


def kernels(model: tightship.Model | tightship.MemoryPlan) -> list[str]:
    plan = model if isinstance(model, tightship.MemoryPlan) else model.plan
    return [step.implementation for step in plan.steps]


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_is_what_onnxruntime_computes(name: str) -> None:
    case = CASES[name]()
    with tightship.load(case.model) as model:
        assert "winograd" in kernels(model), kernels(model)
        results = model.run(case.feeds)
        assert_near(results, expected(case.model, case.feeds), tolerance=1e-5)
        for byte in (0xFF, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), results)
    with tightship.load(case.model, without=("winograd",)) as model:
        assert "winograd" not in kernels(model)
        assert_near(model.run(case.feeds), results, tolerance=1e-5)


@pytest.mark.parametrize("threads", [2, 3, 7, 16])
@pytest.mark.parametrize("name", ["an addend", "half a block of outputs", "of batch 3"])
def test_threads_do_not_change_a_bit(name: str, threads: int) -> None:
    case = CASES[name]()
    with tightship.load(case.model) as model:
        wanted = model.run(case.feeds)
    with tightship.load(case.model, threads=threads) as model:
        assert "winograd" in kernels(model)
        assert_same_bits(model.run(case.feeds), wanted)


@pytest.mark.parametrize(
    "case",
    [
        conv((1, 32, 24, 24), 32, WINDOW, **SAME, strides=[2, 2]),
        conv((1, 32, 24, 24), 32, WINDOW, pads=[2] * 4, dilations=[2, 2]),
        conv((1, 64, 24, 24), 64, WINDOW, **SAME, group=2),
        conv((1, 24, 24, 24), 32, WINDOW, **SAME),
        conv((1, 32, 24, 24), 24, WINDOW, **SAME),
        conv((1, 32, 24, 24), 32, (5, 5), pads=[2] * 4),
        conv((1, 32, 24, 24), 32, (3, 1)),
        conv((1, 64, 5, 1), 64, WINDOW, **SAME),
    ],
    ids=["strides", "dilations", "groups", "channels", "outputs", "5x5", "3x1", "few pixels"],
)
def test_other_convolutions_are_left_to_other_kernels(case: Case) -> None:
    assert "winograd" not in kernels(tightship.plan(case.model))


@pytest.mark.parametrize("made", [resnet, unet, yolo], ids=["ResNet", "U-Net", "YOLO"])
@pytest.mark.parametrize("threads", [1, 2])
def test_no_plan_grows(made: Callable[[], Case], threads: int) -> None:
    case = made()
    fast = tightship.plan(case.model, threads=threads)
    direct = tightship.plan(case.model, threads=threads, without=("winograd",))
    assert "winograd" in kernels(fast)
    assert fast.arena_bytes <= direct.arena_bytes
    assert fast.weights_bytes <= direct.weights_bytes


def test_errors_are_below_a_hundred_thousandth_of_the_largest_result() -> None:
    rng = np.random.default_rng(4)
    image = np.maximum(rng.standard_normal((1, 256, 10, 10)), 0).astype(np.float32)
    weights = (rng.standard_normal((64, 256, 3, 3)) * np.sqrt(2 / (9 * 256))).astype(np.float32)
    net = Net()
    spread_over(net)
    net.output(net("Conv", net.input("x", image), net.constant(weights)))
    case = net.case()
    wanted = sum(
        np.einsum("chw,oc->ohw", image[0, :, y : y + 8, x : x + 8].astype(np.float64),
                  weights[:, :, y, x].astype(np.float64))
        for y in range(3)
        for x in range(3)
    )  # fmt: skip
    with tightship.load(case.model) as model:
        assert "winograd" in kernels(model)
        *_, result = model.run(case.feeds).values()
    assert np.abs(result[0] - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(("outputs", "threads"), [(32, 1), (48, 2), (80, 3)])
def test_vectors_of_all_widths_compute_the_same(lanes: int, outputs: int, threads: int) -> None:
    rng = np.random.default_rng(outputs)
    image = rng.standard_normal((2, 9, 14, 48)).astype(np.float32)
    weights = (rng.standard_normal((outputs // 16, 9, 48, 16)) / 20).astype(np.float32)
    bias = rng.standard_normal(outputs).astype(np.float32)
    addend = rng.standard_normal((2, 9, 14, outputs)).astype(np.float32)
    sizes = [[9, 14], [9, 14], [1, 1]]
    strides = tuple([9 * 14 * count, 14 * count, count, 16] for count in (48, outputs))
    kernel = NativeKernel.winograd(
        [2, 48, outputs], sizes, strides, [14, 32], True, (0.0, 0.0), True, True, lanes
    )
    target = np.full(addend.shape, np.nan, np.float32)
    scratch = np.full(kernel.scratch_bytes(threads) // 4, np.nan, np.float32)
    run_kernel(kernel, image, weights, bias, addend, target, scratch, threads=threads)
    padded = np.pad(image.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = weights.transpose(1, 2, 0, 3).reshape(9, 48, outputs).astype(np.float64)
    total = bias + addend.astype(np.float64)
    for tap in range(9):
        y, x = divmod(tap, 3)
        total = total + padded[:, y : y + 9, x : x + 14] @ taps[tap]
    wanted = total / (1 + np.exp(-total))
    np.testing.assert_allclose(target, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("batches", [(1, 2, 9), (9, 1, 2)])
def test_weights_are_packed_once_for_all_batches(batches: tuple[int, ...]) -> None:
    net = Net()
    spread_over(net)
    x = net("Relu", net.normal("x", 1, 128, 7, 7))
    y = net("Conv", x, net.weight(160, 128, 3, 3), net.bias(160), **SAME)
    net.output(net("Relu", y))
    file = opened(net, {"wide": (WIDE,), "x": ("batch", 128, 7, 7)})
    with tightship.load(file, shapes={"batch": batches[0]}) as model:
        assert "winograd" in kernels(model)
        held = model.memory_stats().weights_bytes
        for count in batches:
            feeds = net.feeds | {
                "x": np.random.default_rng(5).standard_normal((count, 128, 7, 7)).astype("f")
            }
            assert_near(model.run(feeds), expected(file, feeds))
            assert model.memory_stats().weights_bytes == held


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"counts": [1, 24, 32]}, "numbers of channels"),
        ({"counts": [0, 32, 32]}, "impossible length"),
        ({"sizes": [[8, 8], [8, 8], [3, 1]]}, "such pads"),
        ({"sizes": [[1 << 25, 8], [8, 8], [1, 1]]}, "such a size"),
        ({"at_once": [14, 24]}, "such a depth"),
        ({"at_once": [0, 32]}, "impossible length"),
        ({"counts": [1 << 40, 1 << 20, 32]}, "too many elements"),
    ],
)
def test_impossible_shapes_are_refused(change: dict[str, list[int]], said: str) -> None:
    given = {"counts": [1, 32, 32], "sizes": [[8, 8], [8, 8], [1, 1]], "at_once": [14, 32]}
    given |= change
    strides = [8 * 8 * 32, 8 * 32, 32, 16]
    with pytest.raises(ValueError, match=said):
        NativeKernel.winograd(
            given["counts"], given["sizes"], (strides, strides), given["at_once"], False,
            (0.0, 1.0), False, False,
        )  # fmt: skip
