"""Convolutional samples run at any batch, and keep activations finite at their real size."""

import numpy as np
import pytest

from tests.sample.networks import check
from tests.zoo.oracle import expected
from tightship.sample import sample
from tightship.sample.convolutional import inception_bn, resnet
from tightship.sample.network import Network


@pytest.mark.parametrize("batch", [1, 3])
def test_inception_runs_at_any_batch(batch: int) -> None:
    net = Network(3)
    inception_bn(net, "batch", size=64, shrink=16)
    check(net.model().SerializeToString(), batch)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("folded", [False, True])
def test_residual_networks_run_at_any_batch(batch: int, *, folded: bool) -> None:
    net = Network(3)
    resnet(net, "batch", size=32, blocks=(1, 1), width=8, folded=folded)
    check(net.model().SerializeToString(), batch)


def test_scores_at_the_real_size_are_finite_and_differ() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 224, 224)).astype(np.float32)
    (scores,) = expected(sample("inception_bn"), {"x": x}).values()
    assert np.isfinite(scores).all()
    assert np.abs(scores[0] - scores[1]).max() > 1e-4
    assert 1e-3 < scores.max() < 0.999, "neither even nor all in one class"
