"""Open lengths of a module: named in shapes, exported as lengths that torch does not fix."""

import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH
from tightship.errors import InputError
from tightship.frontend.torch.examples import Examples
from tightship.frontend.torch.open_axes import OpenAxes

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytestmark = OF_TORCH


class Pair(torch.nn.Module):
    """A module of two inputs with a length in common."""

    def forward(self, a, b):
        return a + b.sum(1, keepdim=True)


GIVEN = (torch.ones(1, 4), torch.ones(1, 3))


def test_lengths_of_one_are_exported_as_two_and_planned_as_one():
    axes = OpenAxes({"a": ("n", 4), "b": ("n", "m")})
    examples = axes.applied(Examples.of(Pair(), GIVEN))
    assert {name: tuple(leaf.shape) for name, leaf in examples.leaves()} == {
        "a": (2, 4), "b": (2, 3),
    }  # fmt: skip
    assert axes.named.bound == {"a": (1, 4), "b": (1, 3)}
    assert axes.named.lengths == {"n": 1, "m": 3}


def test_without_names_nothing_is_open():
    axes = OpenAxes({"a": (7, 4)})
    examples = axes.applied(Examples.of(Pair(), GIVEN))
    assert axes.dynamic_shapes(examples) is None
    assert dict(examples.leaves())["a"].shape == (7, 4)


def test_open_lengths_are_planned_for_each_value():
    shapes = {"a": ("n", 4), "b": ("n", "m")}
    with tightship.load(Pair(), GIVEN, shapes=shapes) as model:
        for n, m in ((1, 3), (5, 2), (2, 1)):
            a, b = torch.rand(n, 4), torch.rand(n, m)
            found = model(a.numpy(), b.numpy())
            torch.testing.assert_close(torch.from_numpy(found), Pair()(a, b))
    planned = tightship.plan(Pair(), GIVEN, shapes={**shapes, "n": 6, "m": 9})
    assert planned.inputs == {"a": "6x4 float32", "b": "6x9 float32"}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"c": (1, 4)}, "no input `c`; its inputs are: `a`, `b`"),
        ({"a": (1,)}, "give 2 lengths"),
        ({"a": 3}, "give 2 lengths"),
        ({"a": ("n", "n")}, "`n` is 1 in one example input and 4"),
        ({"a": ("2*n", 4)}, "`2\\*n` of input `a` is not a name"),
        ({"a": ("n", 4), "k": 2}, "no input `k`"),
    ],
)
def test_what_contradicts_the_examples_is_named(shapes, message):
    with pytest.raises(InputError, match=message):
        tightship.plan(Pair(), GIVEN, shapes=shapes)


def test_a_length_that_the_module_fixes_is_named():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.view(-1, 8, 4)

    with pytest.raises(InputError, match=r"A length of `Fixed` cannot stay open: .*\bn\b"):
        tightship.plan(Fixed(), torch.ones(8, 4), shapes={"x": ("n", 4)})
