"""The fully connected sample runs at any batch."""

import pytest

from tests.sample.networks import check
from tightship.sample.network import Network
from tightship.sample.perceptron import perceptron


@pytest.mark.parametrize("layers", [(784, 128, 64, 10), (3, 2)])
@pytest.mark.parametrize("batch", [1, 5])
def test_it_runs_at_any_batch(layers: tuple[int, ...], batch: int) -> None:
    net = Network(1)
    perceptron(net, "batch", layers)
    check(net.model().SerializeToString(), batch)
