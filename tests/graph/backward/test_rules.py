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
    "Clip by what is computed": (
        "double[4,5] x, double a, double b",
        "square = Mul (a, a) above = Exp (b) below = Neg (square) y = Clip (x, below, above)",
    ),
    "Concat": ("double[2,3] x, double[2,2] b", "y = Concat <axis = 1> (x, b)"),
    "Cos": ("double[5] x", "y = Cos (x)"),
    "CumSum": ("double[3,4] x", "y = CumSum (x, axis)"),
    "CumSum before": ("double[3,4] x", "y = CumSum <exclusive = 1, reverse = 1> (x, axis)"),
    "DepthToSpace": ("double[2,8,2,3] x", "y = DepthToSpace <blocksize = 2> (x)"),
    "DepthToSpace inner": (
        "double[2,8,2,3] x", 'y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)'
    ),
    "Div": ("double[2,3] x, double[3] b", "y = Div (x, b)"),
    "Elu": ("double[4,5] x", "y = Elu <alpha = 0.7> (x)"),
    "Erf": ("double[4,5] x", "y = Erf (x)"),
    "Exp": ("double[5] x", "y = Exp (x)"),
    "Expand": ("double[3,1] x", "y = Expand (x, shape)"),
    "Flatten": ("double[2,3,4] x", "y = Flatten <axis = 2> (x)"),
    "Gather": ("double[4,3] x", "y = Gather <axis = 1> (x, places)"),
    "GatherElements": ("double[4,3] x", "y = GatherElements <axis = 0> (x, table)"),
    "GatherND": ("double[4,3] x", "y = GatherND (x, tuples)"),
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
    "LRN": ("double[2,5,3] x", "y = LRN <size = 4, alpha = 0.9, bias = 0.7> (x)"),
    "Max": ("double[2,3] x, double[3] b", "y = Max (x, b)"),
    "Mean": ("double[2,3] x, double[3] b", "y = Mean (x, b)"),
    "Min": ("double[2,3] x, double[3] b", "y = Min (x, b)"),
    "Mul": ("double[2,3] x, double[3] b", "y = Mul (x, b)"),
    "Mul by itself": ("double[2,3] x", "y = Mul (x, x)"),
    "Mish": ("double[4,5] x", "y = Mish (x)"),
    "Neg": ("double[5] x", "y = Neg (x)"),
    "PRelu": ("double[2,3,4] x, double[3,1] b", "y = PRelu (x, b)"),
    "Pad": ("double[2,3] x", "y = Pad (x, pads)"),
    "Pow": ("double[5] x", "y = Pow (x, four)"),
    "Pow squared": ("double[5] x", "y = Pow (x, two)"),
    "Pow of both": ("double[5] x, double[5] b", "a = Exp (x) y = Pow (a, b)"),
    "Pow of integers": ("double[5] x", "b = Size (x) y = Pow (x, b)"),
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
    "ScatterElements": (
        "double[4,3] x, double[2,3] b",
        'y = ScatterElements <axis = 0, reduction = "add"> (x, table, b)',
    ),
    "ScatterND": ("double[4,3] x, double[2] b", "y = ScatterND (x, tuples, b)"),
    "Selu": ("double[4,5] x", "y = Selu (x)"),
    "Sigmoid": ("double[4,5] x", "y = Sigmoid (x)"),
    "Sin": ("double[5] x", "y = Sin (x)"),
    "Slice": ("double[4,5] x", "y = Slice (x, first, last, axes)"),
    "Slice backwards": ("double[4,5] x", "y = Slice (x, last, first, axes, back)"),
    "Slice to the front": ("double[4,5] x", "y = Slice (x, last, front, axes, back)"),
    "Softsign": ("double[4,5] x", "y = Softsign (x)"),
    "SpaceToDepth": ("double[2,3,4,6] x", "y = SpaceToDepth <blocksize = 2> (x)"),
    "ThresholdedRelu": ("double[4,5] x", "y = ThresholdedRelu <alpha = 0.2> (x)"),
    "TopK": ("double[3,5] x", "y, best = TopK (x, count)"),
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
    "axis": np.array(1),
    "count": np.array([2]),
    "tuples": np.array([[0, 2], [3, 1]]),
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


def test_a_celu_of_one_has_the_gradient_of_an_elu():
    graphs = [
        graph_of(f"net (float[4,5] x) => (float[4,5] y) {{ y = {operator} (x) }}")
        for operator in ("Celu", "Elu")
    ]
    feeds = {**numbers(graphs[0]), "d(y)": np.ones((4, 5), np.float32)}
    celu, elu = (run(backward(graph, wrt=["x"]), feeds)[1] for graph in graphs)
    np.testing.assert_allclose(celu, elu, 1e-6)


def test_a_cast_casts_the_gradient_back():
    graph = graph_of("net (double[3] x) => (float y) { y = Cast <to = 1> (x) }")
    given = np.array([0.1, 0.2, 0.3], np.float32)
    gradient = run(backward(graph, wrt=["x"]), {"x": np.zeros(3), "d(y)": given})[-1]
    assert gradient.dtype == np.float64
    assert np.array_equal(gradient, given)


PLACED = 'mode = "linear", coordinate_transformation_mode = '
RESIZES = {
    "linear": ('mode = "linear"', [2, 2]),
    "linear, smaller": ('mode = "linear"', [0.7, 0.5]),
    "linear, corners": (f'{PLACED}"align_corners"', [2, 1.8]),
    "linear, one pixel": (f'{PLACED}"pytorch_half_pixel"', [0.25, 1.5]),
    "linear, symmetric": (f'{PLACED}"half_pixel_symmetric"', [1.3, 1.5]),
    "linear, asymmetric": (f'{PLACED}"asymmetric"', [2, 3]),
    "nearest": ("", [1.5, 2]),
    "nearest, asymmetric": ('coordinate_transformation_mode = "asymmetric"', [3, 1.4]),
    "nearest, up": ('nearest_mode = "ceil"', [1.5, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", RESIZES)
def test_the_gradient_of_a_resize_is_its_slope(name):
    how, factors = RESIZES[name]
    text = f"net (double[2,2,4,5] x) => (double y) {{ y = Resize <{how}> (x, , factors) }}"
    graph = graph_of(text.replace("<>", ""), factors=np.array([1, 1, *factors], np.float32))
    check(graph, numbers(graph), ["x"])


def test_a_resize_to_sizes_of_some_axes_has_its_slope():
    text = """net (double[2,3,4,5] x) => (double y) {
        y = Resize <mode = "linear", axes = [3, 1]> (x, , , sizes)
    }"""
    graph = graph_of(text, sizes=np.array([7, 5]))
    check(graph, numbers(graph), ["x"])


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ('mode = "cubic"', "not for `cubic`"),
        ('mode = "linear", antialias = 1', "without antialias"),
        ('mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"', "tf_crop"),
    ],
)
def test_a_resize_of_other_sums_is_refused(how, why):
    roi = ", roi" if "crop" in how else ", "
    text = f"net (double[1,2,4,4] x) => (double y) {{ y = Resize <{how}> (x{roi}, factors) }}"
    weights = {"roi": np.array([0.0, 0, 0, 0, 1, 1, 1, 1])} if "crop" in how else {}
    graph = graph_of(text, factors=np.array([1, 1, 2, 3], np.float32), **weights)
    with pytest.raises(GraphError, match=why):
        backward(graph, wrt=["x"])


EINSUMS = {
    "product": ("ij,jk->ik", "2,3", "3,4"),
    "of heads": ("bqhd,bkhd->bhqk", "2,3,2,4", "2,5,2,4"),
    "summed alone": ("ij,k->k", "2,3", "4"),
    "to a number": ("ij,ij->", "2,3", "2,3"),
    "with leading axes": ("...ij,...jk->...ik", "2,3,4", "2,4,5"),
    "implied": ("ij,jk", "2,3", "3,4"),
}


@pytest.mark.parametrize("name", EINSUMS)
def test_the_gradient_of_a_contraction_is_its_slope(name):
    equation, a, b = EINSUMS[name]
    text = f"""net (double[{a}] x, double[{b}] w) => (double y) {{
        y = Einsum <equation = "{equation}"> (x, w)
    }}"""
    graph = graph_of(text)
    check(graph, numbers(graph), graph.inputs)


@pytest.mark.parametrize(("equation", "shape"), [("ii->i", "3,3"), ("ij,ij->j", "3,4")])
def test_a_diagonal_and_a_repeated_axis_are_refused(equation, shape):
    more = ", double[1,4] w" if "," in equation else ""
    operands = "x, w" if more else "x"
    text = f"""net (double[{shape}] x{more}) => (double y) {{
        y = Einsum <equation = "{equation}"> ({operands})
    }}"""
    with pytest.raises(GraphError, match="no operand has a label twice"):
        backward(graph_of(text), wrt=["x"])


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
