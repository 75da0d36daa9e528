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
CLIPPED = 0.5
OPTIMIZERS = {
    "sgd": (Sgd(0.05), lambda weights: torch.optim.SGD(weights, 0.05)),
    "momentum": (Sgd(0.02, 0.9), lambda weights: torch.optim.SGD(weights, 0.02, 0.9)),
    "adam": (Adam(0.01), lambda weights: torch.optim.Adam(weights, 0.01)),
    "decayed": (
        Sgd(0.05, weight_decay=0.1),
        lambda weights: torch.optim.SGD(weights, 0.05, weight_decay=0.1),
    ),
    "nesterov": (
        Sgd(0.02, 0.9, weight_decay=0.1, nesterov=True),
        lambda weights: torch.optim.SGD(weights, 0.02, 0.9, weight_decay=0.1, nesterov=True),
    ),
    "adamw": (
        Adam(0.01, weight_decay=0.3),
        lambda weights: torch.optim.AdamW(weights, 0.01, weight_decay=0.3),
    ),
    "clipped": (
        Adam(0.01, weight_decay=0.1, clip_norm=CLIPPED),
        lambda weights: torch.optim.AdamW(weights, 0.01, weight_decay=0.1),
    ),
    "clipped_sgd": (
        Sgd(0.05, 0.9, clip_norm=CLIPPED), lambda weights: torch.optim.SGD(weights, 0.05, 0.9),
    ),
}  # fmt: skip


def by_torch(net, names, make, steps, limit=None):
    """Losses and norms of gradients of each step, and tensors after the last."""
    from tests.graph.backward.torch_oracle import evaluate, tensors

    graph = read_bytes(net.model)
    (output,) = graph.outputs
    graph = LOSSES[net.loss](graph, output, "labels")
    held = tensors(graph, net.feeds)
    trained = [name for name in names if not name.startswith(("mean", "variance"))]
    for name in trained:
        held[name].requires_grad_()
    optimizer, losses, norms = make([held[name] for name in trained]), [], []
    for _ in range(steps):
        values = dict(held)
        evaluate(graph, values)
        optimizer.zero_grad()
        values[f"{output}.loss"].backward()
        if limit is not None:
            parameters = [held[name] for name in trained]
            norms.append(torch.nn.utils.clip_grad_norm_(parameters, limit).item())
        optimizer.step()
        losses.append(values[f"{output}.loss"].item())
    return losses, norms, {name: held[name].detach().numpy() for name in names}


@pytest.mark.parametrize("how", OPTIMIZERS)
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("threads", [1, 2])
def test_twenty_steps_are_those_of_torch(name, how, threads):
    net, (optimizer, make) = NETS[name](), OPTIMIZERS[how]
    with train(net.model, net.loss, optimizer, threads=threads) as trainer:
        first = trainer.weights()
        shown = [(trainer.step(net.feeds), trainer.gradient_norm) for _ in range(20)]
        last = trainer.weights()
    limit, losses = optimizer.clip_norm, [loss for loss, _ in shown]
    wanted_losses, norms, wanted = by_torch(net, list(last), make, 20, limit)
    if limit:
        np.testing.assert_allclose([norm for _, norm in shown], norms, 1e-3)
        assert max(norms) > limit
    np.testing.assert_allclose(losses, wanted_losses, 1e-4, 1e-5 * losses[0])
    assert losses[-1] < losses[0]
    for key, array in last.items():
        moved = np.abs(wanted[key] - first[key]).max()
        assert moved > 0
        assert np.abs(array - wanted[key]).max() <= moved / 500, key
