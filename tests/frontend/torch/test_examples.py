"""Example inputs: bound to the parameters of a module, with the names of its inputs."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

from tightship.errors import InputError  # noqa: E402 - torch comes first
from tightship.frontend.torch.examples import Examples  # noqa: E402 - torch comes first


class Net(torch.nn.Module):
    """A module with every kind of parameter."""

    def forward(self, first, *rest, flag=True, tree=None, **named):
        return first, rest, flag, tree, named


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (X, ["first"]),
        ((X, X, X), ["first", "rest_0", "rest_1"]),
        ([X], ["first"]),
        ({"first": X, "tree": {"a": [X, X], "b": X}}, ["first", "tree_a_0", "tree_a_1", "tree_b"]),
        ({"first": X, "flag": False}, ["first"]),
        (np.ones((2, 3), np.float32), ["first"]),
    ],
)
def test_tensors_have_the_names_of_parameters_and_places(given, names):
    found = Examples.of(Net(), given)
    assert [name for name, _ in found.leaves()] == names
    assert all(isinstance(leaf, torch.Tensor) for _, leaf in found.leaves())


def test_names_are_those_of_exported_programs():
    module, x = torch.nn.Module(), torch.ones(2)
    module.forward = lambda a, tree: a + tree["b"][0]
    found = Examples.of(module, (x, {"b": [x]}))
    arguments, keywords = found.call()

    class Called(torch.nn.Module):
        def forward(self, a, tree):
            return module.forward(a, tree)

    program = torch.export.export(Called(), arguments, keywords)
    assert list(program.graph_signature.user_inputs) == [name for name, _ in found.leaves()]


def test_a_mapped_tree_keeps_its_form_and_what_is_not_a_tensor():
    found = Examples.of(Net(), {"first": X, "flag": False, "tree": [X]})
    mapped = found.mapped(lambda name, tensor: tensor + len(name)).arguments
    assert mapped["flag"] is False
    assert torch.equal(mapped["first"], X + 5)
    assert torch.equal(mapped["tree"][0], X + 6)


def test_the_text_names_shapes_and_types():
    assert Examples.of(Net(), X.to(torch.int64)).text() == "`first` 2x3 int64"


def test_examples_on_another_device_are_refused():
    class Elsewhere(torch.Tensor):
        device = torch.device("cuda", 0)

    with pytest.raises(InputError, match=r"`first` is on `cuda:0`.*`first.cpu\(\)`"):
        Examples.of(Net(), X.as_subclass(Elsewhere))


def test_what_does_not_fit_shows_the_parameters():
    with pytest.raises(InputError, match=r"forward\(first, \*rest, flag=True, tree=None"):
        Examples.of(Net(), ())
