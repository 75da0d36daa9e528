"""An output that is another value's bytes is written where the caller has it."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests.small_models import model

FLOAT = TensorProto.FLOAT
SHAPE = (1, 6, 5, 16)
X = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
WEIGHTS = {"w": np.random.default_rng(1).standard_normal((16, 16, 3, 3)).astype(np.float32) / 9}


def step_of_images(last, *more):
    """A convolution of an image with channels last, and what `last` makes of it."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["image"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["image", "w"], ["sums"], pads=[1] * 4),
        *last,
    ]
    outputs = [("y", FLOAT, SHAPE), *more]
    return model(nodes, [("x", FLOAT, SHAPE)], outputs, WEIGHTS)


NHWC = {"perm": [0, 2, 3, 1]}
PLAIN = step_of_images(
    [
        helper.make_node("Tanh", ["sums"], ["curved"]),
        helper.make_node("Transpose", ["curved"], ["y"], **NHWC),
    ]
)
TWICE = step_of_images(
    [
        helper.make_node("Transpose", ["sums"], ["y"], **NHWC),
        helper.make_node("Transpose", ["sums"], ["z"], **NHWC),
        helper.make_node("Relu", ["sums"], ["r"]),
        helper.make_node("ReduceSum", ["r"], ["sum"], keepdims=0),
    ],
    ("z", FLOAT, SHAPE),
    ("sum", FLOAT, ()),
)

ADDED = step_of_images(
    [
        helper.make_node("Conv", ["image", "w"], ["more"], pads=[1] * 4, strides=[1, 1]),
        helper.make_node("Tanh", ["more"], ["curved"]),
        helper.make_node("Conv", ["curved", "w"], ["late"], pads=[1] * 4),
        helper.make_node("Add", ["sums", "late"], ["both"]),
        helper.make_node("Transpose", ["both"], ["y"], **NHWC),
    ]
)
"""A sum that one convolution writes and another adds to, where it lies."""
CASES = pytest.mark.parametrize("source", [PLAIN, TWICE, ADDED], ids=["one", "twice", "added"])


def copies(source, without=()):
    return [
        step.name
        for step in tightship.plan(source, without=without).steps
        if step.name.endswith((".copy", ".reorder"))
    ]


@CASES
def test_nothing_is_copied_to_the_caller(source):
    """A value that is two outputs has one home, so one of them is a copy."""
    wanted = 1 if source is TWICE else 0
    assert len(copies(source)) == wanted
    assert len(copies(source, ("write_outputs_directly",))) == wanted + 1


@CASES
def test_results_are_the_same_to_the_last_bit_and_the_peak_no_larger(source):
    found = []
    for without in ((), ("write_outputs_directly",)):
        with tightship.load(source, without=without) as loaded:
            results = loaded.run({"x": X})
            given = {name: np.full_like(array, 7) for name, array in results.items()}
            loaded.run({"x": X}, outputs=given, workers=2)
            for name, array in results.items():
                np.testing.assert_array_equal(given[name], array)
            found.append((results, loaded.plan.arena_bytes))
    (now, small), (before, large) = found
    for name, array in before.items():
        np.testing.assert_array_equal(now[name], array)
    assert small <= large


@CASES
def test_a_prepared_model_has_its_copies_elided_too(tmp_path, source):
    tightship.prepare(source, tmp_path / "model.tship")
    with tightship.load(tmp_path / "model.tship") as loaded, tightship.load(source) as fresh:
        for one, other in zip(
            loaded.run({"x": X}).values(), fresh.run({"x": X}).values(), strict=False
        ):
            np.testing.assert_array_equal(one, other)
        assert len(loaded.plan.steps) == len(fresh.plan.steps)
