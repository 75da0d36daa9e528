"""Training steps of AOT autograd, run by the engine, against torch's own autograd."""

import re

import numpy as np
import pytest

from tests.frontend.torch.case import OF_TORCH, Function, array, torch
from tests.frontend.torch.test_models import Language, perceptron, resnet
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.errors import GraphError
from tightship.frontend.torch import read, training_graph
from tightship.graph.backward import (
    DOMAIN,
    OPERATORS,
    Sgd,
    backward,
    with_squared_error,
    with_updates,
)
from tightship.graph.backward.operators import types_of
from tightship.model import Model

nn = torch.nn
F = nn.functional
pytestmark = OF_TORCH


def run(graph, feeds):
    with Model(prepare(graph, "test", Settings()), Bounds()) as model:
        return model.run(feeds)


def feeds_of(step, *given):
    names = [name for name in step.graph.inputs if name not in step.state]
    data = zip(names, map(array, given), strict=True)
    return {**dict(data), **{name: held.array() for name, held in step.state.items()}}


def check(module, inputs, loss=None, targets=(), tolerance=2e-4):
    """Hold the loss, every gradient and every changed buffer against torch's."""
    step = training_graph(module, inputs, loss, targets)
    results = run(step.graph, feeds_of(step, *inputs, *targets))
    trained = {name: each for name, each in module.named_parameters() if each.requires_grad}
    assert set(step.parameters) <= set(trained)
    value = module(*inputs) if loss is None else loss(module(*inputs), *targets)
    wanted = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
    np.testing.assert_allclose(results[step.loss], array(value), rtol=1e-5)
    # Of a bias before a normalization there is noise alone: its gradient is 0.
    noise = 4e-6 * max(float(each.abs().max()) for each in wanted if each is not None)
    for name, expected in zip(trained, wanted, strict=True):
        if expected is not None:
            margin = tolerance * float(expected.abs().max()) + noise
            found = results[step.gradients[step.parameters.index(name)]]
            np.testing.assert_allclose(found, array(expected), 0, margin, err_msg=name)
    for name, updated in step.buffers.items():
        after = array(module.get_buffer(name))
        np.testing.assert_allclose(results[updated], after, 1e-5, 1e-6, err_msg=name)
    check_types(step.graph)
    return step


def check_types(graph):
    """Nodes of training have the types that their table gives."""
    for node in graph.nodes:
        if node.domain == DOMAIN:
            kinds = [graph.values[n] if n else None for n in node.inputs]
            given = [None if each is None else (each.dtype, each.shape) for each in kinds]
            wanted = types_of(node.operator, given, node.attributes)
            for name, kind in zip(node.outputs, wanted, strict=False):
                assert not name or (graph.values[name].dtype, graph.values[name].shape) == kind
            assert len(node.inputs) <= len(OPERATORS[node.operator].inputs)


def convolutional(*activations):
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), activations[0](), nn.AvgPool2d(2),
        nn.Conv2d(6, 6, 3, 1, 1, groups=3), nn.BatchNorm2d(6, affine=False), activations[1](),
        nn.MaxPool2d(3, 1, 1), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 5),
    )  # fmt: skip


class Upsampled(nn.Module):
    """Down and up again, with what was before joined on."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(9, 2, 1, bias=False)
        self.wide = nn.ConvTranspose2d(4, 2, 3, 2, 1, output_padding=1, groups=2)

    def forward(self, x):
        y = torch.relu(self.down(x))
        return self.up(torch.cat([x, F.interpolate(y, scale_factor=2), self.wide(y)], 1))


class Written(nn.Module):
    """Views, and writes in place on them."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6))

    def forward(self, x):
        y = x * self.weight
        y[:, 1:3].mul_(2.0)
        y.t()[0] += 1
        z = y.view(2, 12)[:, ::3].clone()
        z[1, 2:].zero_()
        return z.relu_().sum() + (y[1] * y[:, 2:3]).sum() + y.flip(0)[0].square().mean()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 5, padding_idx=2), nn.Linear(5, 7, bias=False)
        self.head.weight = self.table.weight
        self.frozen = nn.Parameter(torch.randn(5), requires_grad=False)
        self.unread = nn.Parameter(torch.randn(5))

    def forward(self, ids):
        return self.head(self.table(ids) * self.frozen)


def normalized():
    return nn.Sequential(
        nn.Conv1d(4, 6, 3), nn.GroupNorm(3, 6), nn.SiLU(), nn.InstanceNorm1d(6, affine=True),
        nn.Flatten(), nn.RMSNorm(18), nn.Tanh(), nn.LayerNorm(18, bias=False), nn.Sigmoid(),
        nn.Linear(18, 3),
    )  # fmt: skip


def encoder():
    layer = nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def labels(count, *shape):
    return (torch.randint(0, count, shape),)


def noise(*shape):
    return (torch.randn(*shape),)


def language_loss(scores, ids):
    return F.cross_entropy(scores.flatten(0, 1), ids.flatten(), ignore_index=3)


torch.manual_seed(0)
STEPS = {
    "perceptron": (perceptron, noise(5, 12), F.nll_loss, labels(7, 5)),
    "resnet": (lambda: without_dropout(resnet()), noise(2, 3, 64, 64), F.cross_entropy,
               labels(10, 2)),
    "convolutional": (lambda: convolutional(nn.LeakyReLU, nn.Hardswish), noise(4, 3, 16, 16),
                      F.cross_entropy, labels(5, 4)),
    "other activations": (lambda: convolutional(nn.Hardsigmoid, nn.ELU), noise(4, 3, 16, 16),
                          F.mse_loss, noise(4, 5)),
    "clipped activations": (lambda: convolutional(nn.ReLU6, nn.Softplus), noise(4, 3, 16, 16),
                            F.l1_loss, noise(4, 5)),
    "normalized": (normalized, noise(2, 4, 5), F.mse_loss, noise(2, 3)),
    "upsampled": (Upsampled, noise(2, 3, 8, 8), F.cross_entropy, labels(2, 2, 8, 8)),
    "written": (Written, noise(4, 6), None, ()),
    "tied": (Tied, labels(7, 3, 4), language_loss, labels(7, 3, 4)),
    "language": (Language, labels(50, 2, 11), language_loss, labels(50, 2, 11)),
    "encoder": (encoder, noise(2, 9, 24), F.mse_loss, noise(2, 9, 24)),
}  # fmt: skip


def without_dropout(module):
    for each in module.modules():
        if isinstance(each, nn.Dropout):
            each.p = 0.0
    return module


@pytest.mark.parametrize("name", STEPS)
def test_a_step_has_torchs_gradients(name):
    make, inputs, loss, targets = STEPS[name]
    check(make(), inputs, loss, targets)


def test_a_network_in_inference_is_trained_by_the_statistics_that_it_has():
    module = convolutional(nn.ReLU, nn.ReLU).eval()
    step = check(module, noise(4, 3, 16, 16), F.cross_entropy, labels(5, 4))
    assert not step.buffers


def test_inputs_are_called_as_the_arguments_and_parameters_as_in_the_module():
    step = check(Tied(), labels(7, 3), F.cross_entropy, labels(7, 3))
    assert step.graph.inputs == ("ids", "target", "table.weight")
    assert step.graph.outputs == ("loss", "d(table.weight)")
    assert "frozen" in step.graph.constants


def test_parameters_stay_where_torch_has_them():
    module = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64))
    step = training_graph(module, noise(3, 32), F.mse_loss, noise(3, 64))
    assert step.state["0.weight"].array().ctypes.data == module[0].weight.data_ptr()
    assert step.buffers["1.running_mean"] == "1.running_mean.updated"
    assert {"1.running_mean", "1.running_var", "1.num_batches_tracked"} == set(step.buffers)


def test_a_cross_entropy_has_one_gradient_over_the_logarithms():
    step = check(Language(), labels(50, 2, 11), language_loss, labels(50, 2, 11))
    operators = [node.operator for node in step.graph.nodes]
    assert operators.count("SoftmaxCrossEntropyLossGrad") == 1
    assert not {"LogSoftmaxGrad", "NegativeLogLikelihoodLossGrad"} & set(operators)


def test_updates_in_the_graph_are_those_of_torch():
    module, inputs, targets = perceptron(), noise(5, 12), labels(7, 5)
    step = training_graph(module, inputs, F.nll_loss, targets)
    whole = with_updates(step.graph, step.parameters, step.gradients, Sgd(0.5))
    results = run(whole, feeds_of(step, *inputs, *targets))
    optimizer = torch.optim.SGD(module.parameters(), 0.5)
    F.nll_loss(module(*inputs), *targets).backward()
    optimizer.step()
    for name, weight in module.named_parameters():
        np.testing.assert_allclose(results[f"{name}.next"], array(weight), 1e-4, 1e-6)


def test_dropout_gives_a_gradient_to_what_it_kept():
    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(200))

        def forward(self, x):
            return F.dropout(x * self.weight, 0.25).sum()

    x = torch.rand(200) + 1
    step = training_graph(Dropped().train(), (x,))
    gradient = run(step.graph, feeds_of(step, x))["d(weight)"]
    assert 0.5 < (gradient != 0).mean() < 0.95
    np.testing.assert_allclose(gradient, np.where(gradient == 0, 0, array(x) / 0.75), rtol=1e-6)


def test_running_statistics_that_are_averages_of_all_batches_are_refused():
    module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, momentum=None))
    with pytest.raises(GraphError, match=r"`1` \(BatchNorm1d\) has no momentum.*momentum=0\.1"):
        training_graph(module, noise(5, 4), lambda y: y.sum())
    module[1].eval()
    training_graph(module, noise(5, 4), lambda y: y.sum())


def test_a_loss_that_is_no_scalar_is_refused():
    with pytest.raises(GraphError, match=re.escape("the shapes [(3, 2)]; it must give one scalar")):
        training_graph(nn.Linear(4, 2), noise(3, 4))


def test_a_gradient_without_translation_is_reported_with_its_line():
    class Gamma(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(2, 2, 1)

        def forward(self, x):
            return torch.lgamma(self.layer(x)).mean()

    with pytest.raises(GraphError, match=r"test_training\.py:\d+"):
        training_graph(Gamma(), noise(1, 2, 4, 4))


def test_a_parameter_that_does_not_lead_to_the_loss_is_reported():
    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.other = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))

        def forward(self, x):
            return (x * self.weight).sum() + (x * self.other).detach().sum()

    with pytest.raises(GraphError, match="Set `requires_grad` to False"):
        training_graph(Cut(), noise(3))


def test_nothing_to_train_is_refused():
    with pytest.raises(GraphError, match="no parameter"):
        training_graph(Function(torch.sum), noise(3))


def test_the_rules_of_graph_backward_give_what_autograd_does():
    """A program of inference, attention whole, and the step that autograd wrote of it."""
    module, ids = Language().eval(), torch.randint(0, 50, (2, 11))
    weights = tuple(name for name, _ in module.named_parameters())
    forward = read(torch.export.export(module, (ids,)))
    (scores,) = forward.outputs
    graph = backward(with_squared_error(forward, scores), [f"{scores}.loss"], weights)
    target = torch.randn(2, 11, 50)
    found = run(graph, {forward.inputs[0]: array(ids), "target": array(target)})
    step = training_graph(module, (ids,), F.mse_loss, (target,))
    wanted = run(step.graph, feeds_of(step, ids, target))
    assert "Attention" in [node.operator for node in graph.nodes]
    for name in weights:
        gradient = graph.outputs[len(forward.outputs) :][weights.index(name)]
        expected = wanted[f"d({name})"]
        np.testing.assert_allclose(found[gradient], expected, 0, 2e-4 * np.abs(expected).max())
