"""Convolutions in groups too narrow for oneDNN, some of which are taken as one."""

import pytest

import tightship
from tests.processor import HAS_AVX512
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, expected

CHANNELS_AND_GROUPS = ((64, 64), (64, 32), (96, 32), (34, 34), (17, 17), (24, 3), (67, 67))


def grouped(rank: int, channels: int, groups: int) -> Case:
    net = Net(channels)
    x = net.normal("x", 2, channels, *[5] * rank)
    weight = net.weight(2 * channels, channels // groups, *[3] * rank)
    y = net("Conv", x, weight, net.bias(2 * channels), group=groups, pads=[1] * 2 * rank)
    net.output(net("Relu", y))
    return net.case()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("channels", "groups"), CHANNELS_AND_GROUPS)
def test_a_grouped_convolution_gives_what_onnxruntime_gives(
    rank: int, channels: int, groups: int
) -> None:
    case = grouped(rank, channels, groups)
    with tightship.load(case.model) as model:
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_groups_taken_as_one_are_as_few_as_will_do(rank: int) -> None:
    case = grouped(rank, 512, 512)
    own_bytes = 4 * 1024 * 3**rank
    assert tightship.plan(case.model).weights_bytes <= 16 * own_bytes + 4 * 1024


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("channels", "groups"), CHANNELS_AND_GROUPS)
def test_a_grouped_transposed_convolution_gives_what_onnxruntime_gives(
    rank: int, channels: int, groups: int
) -> None:
    net = Net(channels)
    weight = net.weight(channels, 2, *[3] * rank)
    x = net.normal("x", 2, channels, *[4] * rank)
    net.output(net("Relu", net("ConvTranspose", x, weight, group=groups, strides=[2] * rank)))
    case = net.case()
    with tightship.load(case.model) as model:
        if groups not in (17, 67) and (HAS_AVX512 or rank == 2):
            assert "numpy" not in {step.kernel for step in model.plan.steps}
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
