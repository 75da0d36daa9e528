"""The direction in which a step moves weights, against differences of the loss."""

import numpy as np
import pytest

from tests.training.nets import NETS
from tightship import Sgd, train

APART = 2e-3
"""Distance that weights are moved along the unit direction, either way."""


@pytest.mark.parametrize("without", [(), ("onednn", "native")])
@pytest.mark.parametrize("name", NETS)
def test_a_step_goes_down_the_slope_of_the_loss(name, without):
    net = NETS[name]()
    with train(net.model, net.loss, Sgd(1.0), without=without) as trainer:
        before = {k: v.astype(np.float64) for k, v in trainer.weights().items()}
        trainer.step(net.feeds)
        after = trainer.weights()
        slope = {k: before[k] - after[k] for k in before if not k.startswith(("mean", "variance"))}
        size = np.sqrt(sum((each**2).sum() for each in slope.values()))
        trainer.rate = 0.0
        losses = []
        for sign in (1, -1):
            for key, array in trainer.weights(copy=False).items():
                if key in slope:
                    array[...] = before[key] + sign * APART / size * slope[key]
            losses.append(trainer.step(net.feeds))
    np.testing.assert_allclose((losses[0] - losses[1]) / (2 * APART), size, rtol=0.01)
