"""Convolutions and normalizations whose parameters are inputs, not constants."""

from collections.abc import Sequence

import pytest

import tightship
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, expected


def convolved(operator: str, rank: int, groups: int, channels: tuple[int, int]) -> Case:
    inputs, outputs = channels
    net = Net(rank)
    x = net.normal("x", 2, inputs, *[6] * rank)
    first, second = (inputs, outputs) if operator == "ConvTranspose" else (outputs, inputs)
    weight = net.normal("w", first, second // groups, *[3] * rank)
    y = net(operator, x, weight, net.normal("b", outputs), group=groups, pads=[1] * 2 * rank)
    net.output(net("Relu", y))
    return net.case()


def kernels(case: Case) -> Sequence[str]:
    return [step.kernel for step in tightship.plan(case.model).steps]


@pytest.mark.parametrize("channels", [(8, 8), (16, 32), (6, 10)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_a_convolution_by_computed_weights_gives_what_onnxruntime_gives(
    operator: str, rank: int, groups: int, channels: tuple[int, int]
) -> None:
    case = convolved(operator, rank, groups, channels)
    with tightship.load(case.model) as model:
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_a_convolution_by_computed_weights_needs_no_numpy(operator: str) -> None:
    assert set(kernels(convolved(operator, 2, 1, (16, 32)))) == {"onednn"}


def test_a_batch_norm_by_computed_statistics_runs_without_numpy() -> None:
    net = Net(0)
    x = net.normal("x", 2, 5, 4, 4)
    vectors = [net.normal(name, 5) for name in ("scale", "shift", "mean", "root")]
    vectors[3] = net("Mul", vectors[3], vectors[3])
    net.output(net("BatchNormalization", x, *vectors))
    case = net.case()
    assert "numpy" not in kernels(case)
    with tightship.load(case.model) as model:
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
