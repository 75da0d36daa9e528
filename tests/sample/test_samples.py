"""Samples are found by name, and their weights follow from a seed."""

import onnx
import pytest

from tightship.errors import InputError
from tightship.sample import SAMPLES, sample


def test_equal_seeds_give_equal_bytes_and_others_do_not() -> None:
    once, again, other = sample("mlp", 1), sample("mlp", 1), sample("mlp", 2)
    assert once == again
    assert once != other


def test_all_have_an_open_batch() -> None:
    for name in set(SAMPLES) - {"bert", "gpt2"}:  # which take seconds, and have tests of their own
        model = onnx.load_from_string(sample(name))
        (value,) = model.graph.input
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"
        assert model.graph.name == name


@pytest.mark.parametrize(
    ("name", "seed", "message"),
    [
        ("vgg", 0, "`vgg` is not a sample network; these are: mlp, inception_bn"),
        ("mlp", -1, "The seed is -1; give 0 or more."),
    ],
)
def test_bad_arguments_are_named(name: str, seed: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(name, seed)
