"""Steps that autograd wrote, trained by the engine, against torch's own optimizers."""

import numpy as np
import pytest

from tests.frontend.torch.case import OF_TORCH, array, torch
from tests.frontend.torch.test_models import Language
from tests.frontend.torch.test_training import convolutional, language_loss
from tightship.engine.kernels.gradient.dropout import kept
from tightship.errors import InputError
from tightship.frontend.torch import training_graph
from tightship.graph import DType
from tightship.graph.optimizer import Adam, Sgd
from tightship.safetensors import read_tensors
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
    with pytest.raises(InputError, match=r"copy `Trainer.weights\(\)` into the module"):
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


class Dropped(nn.Module):
    """Two dropouts."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.ones(2, 40))
        self.second = nn.Parameter(torch.ones(2, 40))

    def forward(self, x):
        return (F.dropout(x * self.first, 0.25) + F.dropout(x * self.second, 0.5)).sum()


def test_gradients_go_to_what_dropouts_have_kept_and_no_mask_is_written():
    x = torch.rand(2, 40) + 1
    with train_joint(training_graph(Dropped().train(), (x,)), Sgd(1.0), seed=5) as trainer:
        lowered = trainer._programs[0].executable.placement.lowered
        assert not [o for step in lowered.steps for o in step.writes if o.dtype is DType.BOOL]
        before = trainer.weights()
        trainer.step({"x": array(x)})
        after = trainer.weights()
    for stream, (name, ratio) in enumerate((("first", 0.25), ("second", 0.5))):
        chosen = kept(np.array([5, 1]), ratio, stream, 0, 80).reshape(2, 40)
        change = chosen * array(x) / (1 - ratio)
        np.testing.assert_allclose(before[name] - after[name], change, rtol=1e-5, atol=1e-6)


def test_attention_is_trained_with_weights_dropped():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            q = self.layer(x)
            return F.scaled_dot_product_attention(q, q, q, dropout_p=0.2).square().mean()

    x = torch.randn(2, 5, 8)
    with train_joint(training_graph(Attention().train(), (x,)), Adam(0.01)) as trainer:
        losses = [trainer.step({"x": array(x)}) for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def test_a_label_that_is_no_class_moves_no_running_statistic():
    module = convolutional(nn.ReLU, nn.Hardswish)
    ((images, labels), *_) = image_batches()
    step = training_graph(module, (images,), F.cross_entropy, (labels,))
    with train_joint(step, Sgd(0.1)) as trainer:
        names = trainer.input_names
        before = trainer.weights()
        with pytest.raises(InputError):
            trainer.step({names[0]: array(images), names[1]: np.full(4, 5)})
        for name, weight in trainer.weights().items():
            np.testing.assert_array_equal(weight, before[name], name)
        trainer.step({names[0]: array(images), names[1]: array(labels)})
        assert all((trainer.weights()[name] != before[name]).any() for name in step.buffers)


def test_parts_of_a_batch_change_weights_as_backward_called_for_each_does():
    torch.manual_seed(3)
    module = convolutional(nn.ReLU, nn.Hardswish)
    given = image_batches()[:4]
    step = training_graph(module, given[0][:1], F.cross_entropy, given[0][1:])
    with train_joint(step, Sgd(0.1, 0.9), accumulate=2) as trainer:
        rival = torch.optim.SGD(module.parameters(), 0.1, 0.9)
        for index, (x, y) in enumerate(given):
            (F.cross_entropy(module(x), y) / 2).backward()
            if index % 2:
                rival.step()
                rival.zero_grad()
            trainer.step(dict(zip(trainer.input_names, (array(x), array(y)), strict=True)))
        weights = trainer.weights()
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        np.testing.assert_allclose(weights[name], array(tensor), 1e-2, 1e-3, err_msg=name)


def test_a_checkpoint_has_the_names_of_the_module(tmp_path):
    module = nn.Sequential(nn.Linear(12, 20), nn.BatchNorm1d(20), nn.Linear(20, 5))
    ((rows, labels), *_) = row_batches()
    step = training_graph(module, (rows,), F.cross_entropy, (labels,))
    with train_joint(step, Adam(0.01)) as trainer:
        feeds = dict(zip(trainer.input_names, (array(rows), array(labels)), strict=True))
        trainer.step(feeds)
        trainer.save_checkpoint(tmp_path / "at")
        wanted = trainer.step(feeds)
    with (tmp_path / "at").open("rb") as file:
        assert set(module.state_dict()) <= set(read_tensors(file.fileno()))
    with train_joint(step, Adam(0.01)) as again:
        again.load_checkpoint(tmp_path / "at")
        assert again.step(feeds) == wanted
