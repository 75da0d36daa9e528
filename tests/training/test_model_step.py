"""Steps of files: what is for modules alone is refused by name."""

import pytest

import tightship
from tests.training.nets import mlp
from tightship import InputError, Sgd


def squared(output, labels):
    return (output - labels) ** 2


@pytest.mark.parametrize("loss", [squared, None])
def test_a_function_as_loss_is_for_modules(loss) -> None:
    with pytest.raises(InputError, match="for `model in memory` give `cross_entropy`"):
        tightship.train(mlp().model, loss, Sgd(0.1))


def test_example_inputs_are_for_modules() -> None:
    with pytest.raises(InputError, match="`example_inputs` are for modules"):
        tightship.train(mlp().model, "cross_entropy", Sgd(0.1), example_inputs=3)


@pytest.mark.parametrize(
    ("given", "message"),
    [({}, "give `example_inputs`"), ({"shapes": {"x": (1,)}}, "`shapes` are not for a step")],
)
def test_a_function_needs_examples_and_no_shapes(given, message) -> None:
    with pytest.raises(InputError, match=message):
        tightship.train(lambda x: x, squared, Sgd(0.1), **given)
