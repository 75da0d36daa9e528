"""Modules that cannot be planned: the error names the operator or the decision, and its place."""

import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH
from tightship.errors import GraphError, InputError

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
nn = torch.nn
pytestmark = OF_TORCH
X = torch.randn(3, 4)


class Deciding(nn.Module):
    """A part that decides by data."""

    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Singular(nn.Module):
    """A part with an operator that has no translation."""

    def forward(self, x):
        return torch.linalg.svd(x)[1]


class Foreign(nn.Module):
    """A part that leaves torch."""

    def forward(self, x):
        return torch.from_numpy(x.numpy() * 2)


def within(part):
    return nn.Sequential(nn.Linear(4, 4), nn.Sequential(part))


def test_a_decision_by_data_is_named_with_its_place():
    with pytest.raises(GraphError) as caught:
        tightship.plan(within(Deciding()), X)
    text = str(caught.value)
    assert "decides by data in `1.0` (Deciding)" in text
    assert __file__ in text
    assert "if x.sum() > 0:" in text
    assert "torch.where" in text


def test_an_unsupported_operator_is_named_with_its_place():
    with pytest.raises(GraphError) as caught:
        tightship.plan(within(Singular()), X)
    text = str(caught.value)
    assert "`aten._linalg_svd.default`" in text
    assert "in `1.0` (Singular)" in text
    assert __file__ in text


def test_a_part_that_leaves_torch_is_named():
    with pytest.raises(InputError, match=r"in `1.0` \(Foreign\) at .*: `return torch.from_numpy"):
        tightship.plan(within(Foreign()), X)


def test_inputs_that_do_not_fit_are_named_with_the_part():
    with pytest.raises(InputError, match=r"`input` 2x5 float32 in `0` \(Linear\).*2, 5"):
        tightship.load(within(nn.ReLU()), torch.randn(2, 5))


def test_a_step_names_the_place_too():
    with pytest.raises(GraphError, match=r"decides by data in `1.0` \(Deciding\)"):
        tightship.train(
            within(Deciding()), nn.functional.mse_loss, tightship.Sgd(1),
            example_inputs=X, example_labels=X,
        )  # fmt: skip


def test_a_module_on_another_device_is_refused(monkeypatch):
    module = nn.Linear(4, 4)
    monkeypatch.setattr(torch.Tensor, "device", torch.device("cuda", 1))
    with pytest.raises(InputError, match=r"`weight` of `Linear` is on `cuda:1`.*module.cpu\(\)"):
        tightship.plan(module, X)
