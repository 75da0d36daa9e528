"""The batch of whole networks is followed, and results stay those of each sample alone."""

import pytest

from tests.graph.batch_axis.opened import check_samples, opened
from tests.zoo.bert import bert
from tests.zoo.efficient import efficientnet_b0, mobilenet_v2
from tests.zoo.gpt2 import Heads, Size, gpt2
from tests.zoo.inception_bn import inception_bn
from tests.zoo.net import Net
from tests.zoo.networks import DYNAMIC, STATIC
from tests.zoo.recurrent import lstm
from tests.zoo.resnet import resnet
from tests.zoo.vit import vit
from tests.zoo.yolo import yolo
from tightship.graph.batch_axis import FixedBatchError

TINY = Size(2, Heads(2, 8), 30, 16)
BY_STEPS = "recurrent"
"""Network whose first dimension is not the batch."""
WITH_BODIES = ("branches", "loops")
"""Networks with graphs whose samples are not followed."""


@pytest.mark.parametrize("name", sorted(set(STATIC) - {BY_STEPS, *WITH_BODIES}))
def test_small_networks_give_each_sample_its_own_results(name: str) -> None:
    check_samples(STATIC[name]())


@pytest.mark.parametrize(
    "write",
    [
        lambda: inception_bn(1, 64, 16),
        lambda: resnet(2, 32, (1, 1), 8),
        lambda: bert(1, 8, TINY),
        lambda: bert(2, 8, TINY),
        lambda: gpt2(1, 8, TINY),
        lambda: gpt2(2, 8, TINY, 14),
        lambda: lstm(1, 5, 8),
        lambda: vit(1, 32, 1, Heads(2, 8)),
        lambda: vit(2, 32, 1, Heads(2, 8), 14),
        lambda: efficientnet_b0(1, 32, 2),
        lambda: mobilenet_v2(2, 32, 2),
        lambda: yolo(1, 64, 4, 3),
        lambda: lstm(3, 5, 8, both_ways=True),
    ],
)
def test_networks_of_any_batch_give_each_sample_its_own_results(write: type) -> None:
    check_samples(write())


@pytest.mark.parametrize("name", [*DYNAMIC, *WITH_BODIES])
def test_networks_with_bodies_or_shapes_that_data_decide_are_refused(name: str) -> None:
    with pytest.raises(FixedBatchError, match=r"Node `|Output `|No input"):
        opened({**STATIC, **DYNAMIC}[name]().model)


def test_an_output_without_samples_is_refused() -> None:
    net = Net()
    x = net.normal("x", 2, 3)
    net.output(net("Relu", x), net("Relu", net.constant([1.0])))
    with pytest.raises(FixedBatchError, match="Output `relu1` has no samples"):
        opened(net.case().model)


def test_a_model_without_inputs_is_refused() -> None:
    net = Net()
    net.output(net("Relu", net.constant([1.0])))
    with pytest.raises(FixedBatchError, match="No input has a first dimension"):
        opened(net.case().model)


def test_a_first_dimension_that_is_no_batch_is_refused() -> None:
    with pytest.raises(FixedBatchError, match=r"`LSTM_2`.* samples along axis 0"):
        opened(STATIC[BY_STEPS]().model)
