"""Gradients by oneDNN, against the NumPy kernels that say what the operators mean."""

import numpy as np
import pytest

from tests.engine.graphs import implementations, lowered, run
from tests.graph.backward.differences import graph_of, numbers
from tests.processor import HAS_AVX512, PRODUCT
from tightship import _core
from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.program.program import PrimitiveWork
from tightship.graph.backward import backward

ACTIVATIONS = {
    "Elu <alpha = 0.7>": "EluGrad",
    "Gelu": "GeluGrad",
    'Gelu <approximate = "tanh">': "GeluGrad",
    "HardSigmoid <alpha = 0.3, beta = 0.4>": "HardSigmoidGrad",
    "HardSwish": "HardSwishGrad",
    "LeakyRelu <alpha = 0.2>": "LeakyReluGrad",
    "Relu": "ReluGrad",
    "Sigmoid": "SigmoidGrad",
    "Softplus": "SoftplusGrad",
    "Swish <alpha = 0.8>": "SwishGrad",
    "Tanh": "TanhGrad",
}
HEADER = '<ir_version: 10, opset_import: ["": 24]>'


def gradients_of(text, wrt):
    """A graph in ONNX's text with its gradients, which read a gradient `d(y)`."""
    graph = graph_of(text, HEADER)
    return backward(graph, ["y"], wrt)


def kernels(graph, operator):
    """The tiers that run an operator's steps, in order."""
    return [kernel for name, kernel, _ in implementations(graph) if name == operator]


def assert_bound_and_said(graph):
    """Each primitive has the operands that it touches, and can be made again."""
    _core.record_recipes(True)
    try:
        steps = lowered(graph).steps
    finally:
        _core.record_recipes(False)
    for work in [step.work for step in steps if isinstance(step.work, PrimitiveWork)]:
        desc = work.desc
        assert {number for number, _ in work.arguments} == {number for number, _ in desc.reach()}
        again = PrimitiveDesc.of_recipe(desc.recipe)
        while again.skipped < desc.skipped:
            again.next_implementation()
        assert again.signature == desc.signature


def assert_as_numpy(graph, feeds):
    """The results with oneDNN are those without, up to the order of sums."""
    assert_bound_and_said(graph)
    found, wanted = run(graph, inputs=feeds), run(graph, ("onednn", "native"), feeds)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        margin = 2e-5 * max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(found[name], value, 2e-4, margin, err_msg=name)


@pytest.mark.parametrize("forward", ACTIVATIONS)
@pytest.mark.parametrize("shape", ["3,37", "2,5,7,3"])
def test_gradients_of_activations_are_what_numpy_has(forward, shape):
    operator, _, how = forward.partition(" ")
    graph = gradients_of(
        f"net (float[{shape}] x) => (float[{shape}] y) {{ y = {operator} {how} (x) }}", ["x"]
    )
    assert kernels(graph, ACTIVATIONS[forward]) == ["onednn"]
    feeds = numbers(graph, low=-4.0, high=4.0)
    feeds["x"].flat[::7] = 0
    assert_as_numpy(graph, feeds)


@pytest.mark.parametrize(
    ("a", "b", "y"),
    [
        ("3,4", "4,5", "3,5"),
        ("2,3,4", "4,5", "2,3,5"),
        ("2,3,4", "2,4,5", "2,3,5"),
        ("6,1,3,4", "2,4,5", "6,2,3,5"),
        ("3,4", "2,4,5", "2,3,5"),
    ],
)
def test_gradients_of_products_are_what_numpy_has(a, b, y):
    graph = gradients_of(
        f"net (float[{a}] a, float[{b}] b) => (float[{y}] y) {{ y = MatMul (a, b) }}", ["a", "b"]
    )
    names = ("Gemm", "MatMul", "TransposedMatMul")
    assert [kernels(graph, name) for name in names] in (
        [[PRODUCT] * 2, [PRODUCT], []],
        [[], [PRODUCT], [PRODUCT] * 2],
    )
    assert not (HAS_AVX512 and kernels(graph, "Reorder"))
    assert_as_numpy(graph, numbers(graph))


def test_a_gradient_of_a_scaled_product_is_what_numpy_has():
    graph = gradients_of(
        """net (float[3,4] a, float[4,5] b, float[5] c) => (float[3,5] y) {
            y = Gemm <alpha = 0.5> (a, b, c)
        }""",
        ["a", "b", "c"],
    )
    assert kernels(graph, "Gemm") == [PRODUCT] * 2
    assert not kernels(graph, "Reorder")
    assert_as_numpy(graph, numbers(graph))


CONVOLUTIONS = [
    ("2,3,9,8", "16,3,3,3", "strides = [2, 2], pads = [1, 1, 1, 1]"),
    ("2,32,7,7", "16,32,1,1", "strides = [2, 2]"),
    ("2,32,8,9", "48,32,3,3", "pads = [0, 1, 1, 0]"),
    ("2,20,8,8", "12,20,3,3", 'strides = [3, 2], auto_pad = "SAME_UPPER"'),
    ("2,16,9,9", "16,16,3,3", "dilations = [2, 2], pads = [2, 2, 2, 2]"),
    ("2,32,9,9", "32,1,3,3", "group = 32, pads = [1, 1, 1, 1]"),
    ("2,32,9,9", "64,16,3,3", "group = 2, strides = [2, 2]"),
    ("3,16,11", "32,16,3", "strides = [2], pads = [1, 0]"),
    ("2,16,5,6,7", "16,16,3,3,3", "strides = [2, 1, 2]"),
]


SLOW_WITH_AVX2 = {
    ("2,20,8,8", 'strides = [3, 2], auto_pad = "SAME_UPPER"'): ("ConvGradData",),
    ("2,16,9,9", "dilations = [2, 2], pads = [2, 2, 2, 2]"): ("ConvGradWeights",),
    ("3,16,11", "strides = [2], pads = [1, 0]"): ("ConvGradData",),
    ("2,16,5,6,7", "strides = [2, 1, 2]"): ("ConvGradData",),
}
"""Gradients for which oneDNN has but `gemm` with AVX2."""


@pytest.mark.parametrize(("x", "w", "how"), CONVOLUTIONS)
def test_gradients_of_convolutions_are_what_numpy_has(x, w, how):
    graph = gradients_of(
        f"""net (float[{x}] x, float[{w}] w, float[{w.split(",")[0]}] b) => (y) {{
            y = Conv <{how}> (x, w, b)
        }}""",
        ["x", "w", "b"],
    )
    slow = () if HAS_AVX512 else SLOW_WITH_AVX2.get((x, how), ())
    for operator in ("ConvGradData", "ConvGradWeights"):
        assert kernels(graph, operator) == ["numpy" if operator in slow else "onednn"]
    assert_as_numpy(graph, numbers(graph))


def test_all_implementations_of_a_gradient_can_be_asked_for_when_its_forward_is_gone():
    image = MemoryDesc.any([2, 3, 9, 9])
    operands = [image, MemoryDesc.any([5, 3, 2, 2]), None, MemoryDesc.any([2, 5, 8, 8])]
    window = [1, 1], [0, 0], [0, 0], [0, 0]
    descs = [
        PrimitiveDesc.convolution_weights_gradient(operands, window, Attributes())
        for _ in range(20)
    ]
    found = []
    for desc in descs:
        names = [desc.implementation]
        while desc.next_implementation():
            names.append(desc.implementation)
        found.append(names)
    assert len(found[0]) > 1
    assert all(names == found[0] for names in found)


def test_a_gradient_reads_the_image_in_the_layout_of_the_forward_pass():
    graph = gradients_of(
        """net (float[2,3,16,16] x, float[16,3,3,3] w, float[32,16,3,3] v) => (y) {
            a = Conv <pads = [1, 1, 1, 1]> (x, w)
            b = Relu (a)
            y = Conv <pads = [1, 1, 1, 1]> (b, v)
        }""",
        ["w", "v"],
    )
    between = ("a", "b", "d(a)", "d(b)")
    steps = lowered(graph).steps
    first = [step.operator for step in steps].index("ConvGradWeights")
    moved = [step.writes[0].name for step in steps[first:] if step.operator == "Reorder"]
    assert not [name for name in moved if name.startswith(between)]
    assert_as_numpy(graph, numbers(graph))


@pytest.mark.parametrize("how", ["", "<axis = 1, epsilon = 0.5>"])
@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_gradients_of_layer_normalizations_are_what_numpy_has(how, factor):
    length = "4,33" if how else "33"
    graph = gradients_of(
        f"""net (float[5,4,33] x, float[{length}] s, float[{length}] b) => (y) {{
            y = LayerNormalization {how} (x, s, b)
        }}""",
        ["x", "s", "b"],
    )
    assert kernels(graph, "LayerNormalizationGrad") == ["onednn"] * 2
    feeds = numbers(graph)
    feeds["x"] *= np.float32(factor)
    assert_as_numpy(graph, feeds)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(("axis", "version"), [(1, 11), (2, 11), (2, 24)])
def test_gradients_of_softmaxes_are_what_numpy_has(operator, axis, version):
    graph = graph_of(
        f"net (float[3,5,17] x) => (y) {{ y = {operator} <axis = {axis}> (x) }}",
        f'<ir_version: 8, opset_import: ["": {version}]>',
    )
    graph = backward(graph, ["y"], ["x"])
    assert kernels(graph, f"{operator}Grad") == ["onednn" if HAS_AVX512 else "numpy"]
    assert_as_numpy(graph, numbers(graph, low=-3.0, high=3.0))
