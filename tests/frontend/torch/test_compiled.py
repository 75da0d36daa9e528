"""Modules compiled by `torch.compile` with Tightship as backend, held to torch's own results."""

import warnings

import pytest

from tests.frontend.torch.case import OF_TORCH, Function, torch
from tests.frontend.torch.test_models import Language, perceptron, resnet
from tightship.torch_compile import compile_graph

pytestmark = OF_TORCH

INPUTS = {
    "perceptron": (perceptron, lambda: torch.randn(5, 12)),
    "resnet": (resnet, lambda: torch.randn(2, 3, 64, 64)),
    "language": (Language, lambda: torch.randint(0, 50, (2, 11))),
}


@pytest.fixture(autouse=True)
def seed():
    torch._dynamo.reset()


def compiled(module):
    return torch.compile(module, backend=compile_graph)


@pytest.mark.parametrize("name", INPUTS)
def test_inference_is_that_of_torch(name):
    make, inputs = INPUTS[name]
    module, given = make().eval(), inputs()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        torch.testing.assert_close(compiled(module)(given), module(given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["perceptron", "language"])
def test_gradients_are_those_of_torch(name):
    make, inputs = INPUTS[name]
    module, given = make(), inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        compiled(module)(given).square().sum().backward()
    found = [each.grad.clone() for each in module.parameters()]
    module.zero_grad()
    module(given).square().sum().backward()
    for one, other in zip(found, module.parameters(), strict=True):
        scale = other.grad.abs().max().item() + 1e-3
        torch.testing.assert_close(one, other.grad, rtol=0, atol=1e-4 * scale)


def normalized():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Tanh(),
        torch.nn.Flatten(), torch.nn.Linear(144, 2), torch.nn.BatchNorm1d(2, affine=False),
    )  # fmt: skip


def test_a_batch_normalization_goes_back_through_what_the_forward_path_has_saved():
    module, other, given = normalized(), normalized(), torch.randn(5, 3, 8, 8)
    other.load_state_dict(module.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        compiled(module)(given).sin().sum().backward()
    other(given).sin().sum().backward()
    for one, wanted in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, wanted.grad, rtol=1e-3, atol=1e-5)
    for one, wanted in zip(module.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(one, wanted)


def test_weights_that_change_are_read_as_they_are():
    module, given = perceptron().eval(), torch.randn(5, 12)
    run = compiled(module)
    with torch.no_grad():
        run(given)
        for each in module.parameters():
            each.add_(0.1)
        torch.testing.assert_close(run(given), module(given), rtol=1e-4, atol=1e-5)


def test_a_step_of_an_optimizer_between_runs_is_seen():
    one, given = perceptron(), torch.randn(5, 12)
    other = perceptron()
    other.load_state_dict(one.state_dict())
    run, losses = compiled(one), ([], [])
    for module, call, found in ((one, run, losses[0]), (other, other, losses[1])):
        optimizer = torch.optim.Adam(module.parameters(), 0.01)
        for _ in range(5):
            optimizer.zero_grad()
            loss = call(given).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_what_has_no_translation_is_run_by_torch_with_a_warning():
    module, given = Function(lambda x: torch.linalg.qr(x)[1].abs()), torch.randn(4, 4)
    with pytest.warns(RuntimeWarning, match=r"Torch runs.*aten.linalg_qr"):
        found = compiled(module)(given)
    torch.testing.assert_close(found, module(given))
