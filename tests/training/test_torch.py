"""Twenty steps of a member of each family, against torch's autograd and optimizers.

Losses agree to 1 in 10,000, or 1 in 100,000 of the first. Weights agree to 1 in 500 of how far the
tensor's fastest element has moved: Adam divides a gradient by its own size, so that one which is
nearly nought is all rounding.
"""

import numpy as np
import pytest

from tests.training.nets import NETS
from tightship import Adam, Sgd, train
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import with_cross_entropy, with_squared_error

torch = pytest.importorskip("torch", reason="the oracle of training is torch")

LOSSES = {"cross_entropy": with_cross_entropy, "squared_error": with_squared_error}
OPTIMIZERS = {
    "sgd": (Sgd(0.05), lambda weights: torch.optim.SGD(weights, 0.05)),
    "momentum": (Sgd(0.02, 0.9), lambda weights: torch.optim.SGD(weights, 0.02, 0.9)),
    "adam": (Adam(0.01), lambda weights: torch.optim.Adam(weights, 0.01)),
}


def by_torch(net, names, make, steps):
    """Losses of each step, and tensors after the last."""
    from tests.graph.backward.torch_oracle import evaluate, tensors

    graph = read_bytes(net.model)
    (output,) = graph.outputs
    graph = LOSSES[net.loss](graph, output, "labels")
    held = tensors(graph, net.feeds)
    trained = [name for name in names if not name.startswith(("mean", "variance"))]
    for name in trained:
        held[name].requires_grad_()
    optimizer, losses = make([held[name] for name in trained]), []
    for _ in range(steps):
        values = dict(held)
        evaluate(graph, values)
        optimizer.zero_grad()
        values[f"{output}.loss"].backward()
        optimizer.step()
        losses.append(values[f"{output}.loss"].item())
    return losses, {name: held[name].detach().numpy() for name in names}


@pytest.mark.parametrize("how", OPTIMIZERS)
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("threads", [1, 2])
def test_twenty_steps_are_those_of_torch(name, how, threads):
    net, (optimizer, make) = NETS[name](), OPTIMIZERS[how]
    with train(net.model, net.loss, optimizer, threads=threads) as trainer:
        first = trainer.weights()
        losses = [trainer.step(net.feeds) for _ in range(20)]
        last = trainer.weights()
    wanted_losses, wanted = by_torch(net, list(last), make, 20)
    np.testing.assert_allclose(losses, wanted_losses, 1e-4, 1e-5 * losses[0])
    assert losses[-1] < losses[0]
    for key, array in last.items():
        moved = np.abs(wanted[key] - first[key]).max()
        assert moved > 0
        assert np.abs(array - wanted[key]).max() <= moved / 500, key
