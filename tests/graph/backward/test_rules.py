import re

import numpy as np
import pytest

from tests.graph.backward.differences import check, graph_of, numbers, run
from tightship.errors import GraphError
from tightship.graph.backward import backward

CASES = {
    "Abs": ("double[3,4] x", "y = Abs (x)"),
    "Add": ("double[2,3,4] x, double[3,1] b", "y = Add (x, b)"),
    "Clip": ("double[4,5] x", "y = Clip (x, low, high)"),
    "Concat": ("double[2,3] x, double[2,2] b", "y = Concat <axis = 1> (x, b)"),
    "Cos": ("double[5] x", "y = Cos (x)"),
    "Div": ("double[2,3] x, double[3] b", "y = Div (x, b)"),
    "Elu": ("double[4,5] x", "y = Elu <alpha = 0.7> (x)"),
    "Erf": ("double[4,5] x", "y = Erf (x)"),
    "Exp": ("double[5] x", "y = Exp (x)"),
    "Expand": ("double[3,1] x", "y = Expand (x, shape)"),
    "Flatten": ("double[2,3,4] x", "y = Flatten <axis = 2> (x)"),
    "Gather": ("double[4,3] x", "y = Gather <axis = 1> (x, places)"),
    "GatherElements": ("double[4,3] x", "y = GatherElements <axis = 0> (x, table)"),
    "Gelu": ("double[4,5] x", "y = Gelu (x)"),
    "Gelu tanh": ("double[4,5] x", 'y = Gelu <approximate = "tanh"> (x)'),
    "Gemm": ("double[2,3] x, double[3,4] b, double[4] c", "y = Gemm <beta = 2.0> (x, b, c)"),
    "Gemm transposed": ("double[3,2] x, double[4,3] b", "y = Gemm <transA=1, transB=1> (x, b)"),
    "HardSigmoid": ("double[4,5] x", "y = HardSigmoid <alpha = 0.8> (x)"),
    "HardSwish": ("double[4,5] x", "s = Mul (x, four) y = HardSwish (s)"),
    "Identity": ("double[5] x", "y = Identity (x)"),
    "LeakyRelu": ("double[4,5] x", "y = LeakyRelu <alpha = 0.3> (x)"),
    "Log": ("double[5] x", "a = Mul (x, x) y = Log (a)"),
    "LogSoftmax": ("double[2,5,3] x", "y = LogSoftmax <axis = 1> (x)"),
    "Max": ("double[2,3] x, double[3] b", "y = Max (x, b)"),
    "Mean": ("double[2,3] x, double[3] b", "y = Mean (x, b)"),
    "Min": ("double[2,3] x, double[3] b", "y = Min (x, b)"),
    "Mul": ("double[2,3] x, double[3] b", "y = Mul (x, b)"),
    "Mul by itself": ("double[2,3] x", "y = Mul (x, x)"),
    "Neg": ("double[5] x", "y = Neg (x)"),
    "Pad": ("double[2,3] x", "y = Pad (x, pads)"),
    "Pow": ("double[5] x", "y = Pow (x, four)"),
    "Pow squared": ("double[5] x", "y = Pow (x, two)"),
    "Pow of both": ("double[5] x, double[5] b", "a = Exp (x) y = Pow (a, b)"),
    "Reciprocal": ("double[5] x", "y = Reciprocal (x)"),
    "ReduceL1": ("double[2,3,4] x", "y = ReduceL1 (x, axes)"),
    "ReduceL2": ("double[2,3,4] x", "y = ReduceL2 <keepdims = 0> (x, axes)"),
    "ReduceLogSumExp": ("double[2,3,4] x", "y = ReduceLogSumExp (x, axes)"),
    "ReduceMax": ("double[2,3,4] x", "y = ReduceMax <keepdims = 0> (x, axes)"),
    "ReduceMean": ("double[2,3,4] x", "y = ReduceMean <keepdims = 0> (x, axes)"),
    "ReduceMin": ("double[2,3,4] x", "y = ReduceMin (x)"),
    "ReduceSum": ("double[2,3,4] x", "y = ReduceSum (x, axes)"),
    "ReduceSumSquare": ("double[2,3,4] x", "y = ReduceSumSquare (x, axes)"),
    "Relu": ("double[4,5] x", "y = Relu (x)"),
    "Resize": ("double[1,2,3,4] x", "y = Resize (x, , factors)"),
    "Reshape": ("double[2,6] x", "y = Reshape (x, shape)"),
    "Sigmoid": ("double[4,5] x", "y = Sigmoid (x)"),
    "Sin": ("double[5] x", "y = Sin (x)"),
    "Slice": ("double[4,5] x", "y = Slice (x, first, last, axes)"),
    "Slice backwards": ("double[4,5] x", "y = Slice (x, last, first, axes, back)"),
    "Slice to the front": ("double[4,5] x", "y = Slice (x, last, front, axes, back)"),
    "Softmax": ("double[2,5,3] x", "y = Softmax <axis = 1> (x)"),
    "Softplus": ("double[4,5] x", "y = Softplus (x)"),
    "Split": ("double[2,6] x", "y, z = Split <axis = 1, num_outputs = 2> (x)"),
    "Sqrt": ("double[5] x", "a = Mul (x, x) y = Sqrt (a)"),
    "Squeeze": ("double[2,1,3] x", "y = Squeeze (x, one)"),
    "Sub": ("double[2,3] x, double[2,1] b", "y = Sub (x, b)"),
    "Sum": ("double[2,3] x, double[3] b, double[2,1] c", "y = Sum (x, b, c)"),
    "Tanh": ("double[4,5] x", "y = Tanh (x)"),
    "Tile": ("double[2,3] x", "y = Tile (x, twice)"),
    "Transpose": ("double[2,3,4] x", "y = Transpose <perm = [2, 0, 1]> (x)"),
    "Trilu": ("double[4,4] x", "y = Trilu (x)"),
    "Unsqueeze": ("double[2,3] x", "y = Unsqueeze (x, one)"),
    "Where": ("double[2,3] x, double[3] b", "y = Where (chosen, x, b)"),
}  # fmt: skip
WEIGHTS = {
    "axes": np.array([0, -1]),
    "back": np.array([-2, -1]),
    "chosen": np.array([[True, False, True], [False, False, True]]),
    "factors": np.array([1, 1, 2, 3], np.float32),
    "first": np.array([0, 1]),
    "front": np.array([-9, -9]),
    "four": np.array(4.0),
    "high": np.array(0.6),
    "last": np.array([3, 4]),
    "low": np.array(-0.5),
    "one": np.array([1]),
    "pads": np.array([1, 0, -1, 2]),
    "places": np.array([[2, 0], [2, -1]]),
    "shape": np.array([3, 4]),
    "table": np.array([[0, 3, 3], [1, 0, 3]]),
    "twice": np.array([1, 2]),
    "two": np.array(2.0),
}


def made(inputs, body):
    outputs = "double y, double z" if "z = " in body else "double y"
    words = set(re.findall(r"\w+", body))
    given = {name: array for name, array in WEIGHTS.items() if name in words}
    return graph_of(f"net ({inputs}) => ({outputs}) {{ {body} }}", **given)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_an_operator_is_its_slope(name):
    graph = made(*CASES[name])
    check(graph, numbers(graph), graph.inputs)


def test_a_cast_casts_the_gradient_back():
    graph = graph_of("net (double[3] x) => (float y) { y = Cast <to = 1> (x) }")
    given = np.array([0.1, 0.2, 0.3], np.float32)
    gradient = run(backward(graph, wrt=["x"]), {"x": np.zeros(3), "d(y)": given})[-1]
    assert gradient.dtype == np.float64
    assert np.array_equal(gradient, given)


@pytest.mark.parametrize(
    ("how", "factors"),
    [
        ('mode = "linear"', [1, 1, 2, 2]),
        ('coordinate_transformation_mode = "asymmetric"', [1, 1, 3, 3]),
        ("", [1, 1, 1.5, 2]),
    ],
)
def test_a_resize_that_does_not_repeat_elements_is_refused(how, factors):
    text = f"net (double[1,2,4,4] x) => (double y) {{ y = Resize <{how}> (x, , factors) }}"
    graph = graph_of(text.replace("<>", ""), factors=np.array(factors, np.float32))
    with pytest.raises(GraphError, match="whole factors only"):
        backward(graph, wrt=["x"])


def test_floored_asymmetric_places_are_the_same_repetition():
    how = 'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    text = f"net (double[1,2,3,4] x) => (double y) {{ y = Resize <{how}> (x, , factors) }}"
    graph = graph_of(text, factors=np.array([1, 1, 2, 3], np.float32))
    check(graph, numbers(graph), ["x"])


def test_a_dropout_that_trains_gives_the_gradient_to_what_it_kept():
    graph = graph_of(
        """net (double[40] x) => (double y, bool mask) {
            y, mask = Dropout <seed = 5> (x, ratio, is_training)
        }""",
        ratio=np.array(0.2), is_training=np.array(True),
    )  # fmt: skip
    seed = np.linspace(1, 2, 40)
    made = backward(graph, ["y"], ["x"])
    _, mask, gradient = run(made, {"x": np.ones(40), "d(y)": seed})
    assert 0 < mask.sum() < 40
    np.testing.assert_allclose(gradient, np.where(mask, seed / 0.8, 0))


def test_a_dropout_of_inference_passes_the_gradient_on():
    graph = graph_of("net (double[4] x) => (double y) { y = Dropout (x) }")
    assert backward(graph, wrt=["x"]).outputs == ("y", "d(y)")
