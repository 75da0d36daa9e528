"""Steps that autograd wrote, trained by the engine, against torch's own optimizers."""

import numpy as np
import pytest

from tests.frontend.torch.case import OF_TORCH, array, torch
from tests.frontend.torch.test_models import Language
from tests.frontend.torch.test_training import convolutional, language_loss
from tightship.errors import InputError
from tightship.frontend.torch import training_graph
from tightship.graph.optimizer import Adam, Sgd
from tightship.training.train import train_joint

nn = torch.nn
F = nn.functional
pytestmark = OF_TORCH
STEPS = 5


def batches(*make):
    return [[each() for each in make] for _ in range(STEPS)]


def image_batches():
    return batches(lambda: torch.randn(4, 3, 16, 16), lambda: torch.randint(0, 5, (4,)))


def row_batches():
    return batches(lambda: torch.randn(6, 12), lambda: torch.randint(0, 5, (6,)))


def text_batches():
    return batches(lambda: torch.randint(0, 50, (2, 9)), lambda: torch.randint(0, 50, (2, 9)))


CASES = {
    "sgd": (lambda: convolutional(nn.ReLU, nn.Hardswish), F.cross_entropy, image_batches,
            Sgd(0.05), lambda p: torch.optim.SGD(p, 0.05)),
    "adam": (lambda: nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Linear(20, 5)),
             F.cross_entropy, row_batches, Adam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "language": (Language, language_loss, text_batches,
                 Sgd(0.1), lambda p: torch.optim.SGD(p, 0.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_torch(name):
    make, loss, data, optimizer, of_torch = CASES[name]
    torch.manual_seed(0)
    module, given = make(), data()
    step = training_graph(module, given[0][:1], loss, given[0][1:])
    trainer = train_joint(step, optimizer)
    rival = of_torch(module.parameters())
    for x, y in given:
        rival.zero_grad()
        wanted = loss(module(x), y)
        wanted.backward()
        rival.step()
        found = trainer.step(dict(zip(trainer.input_names, (array(x), array(y)), strict=True)))
        assert found == pytest.approx(float(wanted.detach()), rel=2e-3)
    weights = trainer.weights()
    for parameter, tensor in (*module.named_parameters(), *module.named_buffers()):
        margin = 2e-2 * optimizer.rate * STEPS + 1e-5
        np.testing.assert_allclose(
            weights[parameter], array(tensor), 1e-3, margin, err_msg=parameter
        )
    with pytest.raises(InputError, match=r"put `Trainer.weights\(\)` into the module"):
        trainer.save("anywhere")


def test_a_buffer_that_is_replaced_whole_is_refused():
    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.register_buffer("last", torch.zeros(3))

        def forward(self, x):
            self.last.copy_(x)
            return (x * self.weight).sum()

    step = training_graph(Kept(), (torch.ones(3),))
    with pytest.raises(InputError, match="Buffer `last` is replaced by"):
        train_joint(step, Sgd(0.1))
