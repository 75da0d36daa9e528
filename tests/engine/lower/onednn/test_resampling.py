"""Resize by oneDNN, where its rule is ONNX's."""

import numpy as np
import onnx
import pytest

import tightship
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, expected
from tightship import _core

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

COVERED = [
    ("nearest", "asymmetric", "floor"),
    ("nearest", "half_pixel", "round_prefer_floor"),
    ("nearest", "half_pixel", "round_prefer_ceil"),
    ("linear", "half_pixel", "floor"),
    ("linear", "pytorch_half_pixel", "floor"),
]
OTHERS = [
    ("nearest", "asymmetric", "ceil"),
    ("nearest", "align_corners", "floor"),
    ("linear", "align_corners", "floor"),
    ("linear", "asymmetric", "floor"),
]


def resized(mode: str, where: str, rounding: str, scales: tuple[float, ...]) -> Case:
    net = Net()
    x = net("Conv", net.normal("x", 2, 5, 4, 7), net.weight(18, 5, 3, 3), pads=[1, 1, 1, 1])
    factors = net.constant(np.array((1, 1, *scales), np.float32))
    y = net("Resize", x, "", factors, mode=mode, nearest_mode=rounding,
            coordinate_transformation_mode=where)  # fmt: skip
    net.output(net("Relu", y))
    return net.case()


def kernels(plan: tightship.MemoryPlan) -> list[str]:
    return [step.kernel for step in plan.steps if step.operator == "Resize"]


@pytest.mark.parametrize("scales", [(2.0, 3.0), (1.0, 4.0)], ids=str)
@pytest.mark.parametrize("rule", COVERED, ids="-".join)
def test_pixels_are_repeated_or_blended_as_onnxruntime_does(
    rule: tuple[str, str, str], scales: tuple[float, float]
) -> None:
    case = resized(*rule, scales)
    with tightship.load(case.model) as model:
        assert kernels(model.plan) == ["onednn"]
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))


@pytest.mark.parametrize("rule", OTHERS, ids="-".join)
def test_other_rules_are_left_to_others(rule: tuple[str, str, str]) -> None:
    case = resized(*rule, (2.0, 3.0))
    with tightship.load(case.model) as model:
        assert "onednn" not in kernels(model.plan)
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))


@pytest.mark.parametrize("scales", [(1.5, 1.0), (0.5, 1.0), (1.25, 2.5)], ids=str)
def test_blending_takes_factors_that_are_not_whole(scales: tuple[float, float]) -> None:
    case = resized("linear", "half_pixel", "floor", scales)
    with tightship.load(case.model) as model:
        of_lengths = all(float(n * s).is_integer() for n, s in zip((4, 7), scales, strict=True))
        assert (kernels(model.plan) == ["onednn"]) == of_lengths
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))


def test_repeating_by_factors_that_are_not_whole_is_left_to_others() -> None:
    case = resized("nearest", "half_pixel", "round_prefer_floor", (1.5, 1.0))
    assert "onednn" not in kernels(tightship.plan(case.model))


def test_factors_that_only_the_run_knows_are_left_to_others() -> None:
    """Though the file declares the lengths."""
    net = Net()
    sizes = net.input("sizes", np.array([2, 3, 8, 6], np.int64))
    net.output(net("Resize", net.normal("x", 2, 3, 4, 3), "", "", sizes, mode="linear"))
    case = net.case()
    model = onnx.load_from_string(case.model)
    name = model.graph.output[0].name
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info(name, 1, [2, 3, 8, 6]))
    with tightship.load(model.SerializeToString()) as loaded:
        assert "onednn" not in kernels(loaded.plan)
        assert_near(loaded.run(case.feeds), expected(case.model, case.feeds))
