"""Arguments that `load` and `plan` accept as a model and as shapes, and errors for others."""

import numpy as np
import pytest

import tightship
from tests.models import parse
from tightship.errors import InputError

MODEL = parse("m (float[n,4] x) => (float[n,4] y) { y = Relu(x) }")
DATA = MODEL.SerializeToString()
both = pytest.mark.parametrize("take", [tightship.load, tightship.plan])


@both
@pytest.mark.parametrize("model", [MODEL, 3, None, bytearray(DATA)])
def test_what_is_no_model_is_named_with_what_is(take, model):
    with pytest.raises(InputError, match=f"not {type(model).__name__}; .*SerializeToString"):
        take(model)


@both
@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"x": 4}, "Input `x` was given the shape 4; a shape is a list"),
        ({"x": "4"}, "Input `x` was given the shape '4'"),
        ({"x": None}, "Input `x` was given the shape None"),
        ({"x": ["a", 4]}, r"Input `x` was given the shape \['a', 4\]"),
        ({"x": [1.0, 4]}, r"Input `x` was given the shape \[1.0, 4\]"),
        ([("x", [1, 4])], "`shapes` must map input names to shapes"),
    ],
)
def test_what_is_no_shape_is_refused(take, shapes, said):
    with pytest.raises(InputError, match=said):
        take(DATA, shapes=shapes)


def test_lengths_of_numpy_are_lengths():
    with tightship.load(DATA, shapes={"x": np.array([2, 4])}) as model:
        assert model.run({"x": np.ones((2, 4), np.float32)})["y"].shape == (2, 4)


def test_shapes_of_a_prepared_model_are_looked_at_too(tmp_path):
    path = tmp_path / "model.tship"
    tightship.prepare(DATA, path, shapes={"x": [2, 4]})
    for take in (tightship.load, tightship.plan):
        with pytest.raises(InputError, match="a shape is a list"):
            take(path, shapes={"x": 4})
