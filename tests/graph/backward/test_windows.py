import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.backward.differences import check, graph_of, numbers, run
from tightship.graph.backward import backward

CONVOLUTION = """net (double[{x}] x, double[{w}] w, double[{b}] b) => (double y) {{
    y = {op} <{how}> (x, w, b)
}}"""
POOL = "net (double[{x}] x) => (double y) {{ y = {op} <{how}> (x) }}"


def text(*shape):
    return ",".join(map(str, shape))


@st.composite
def windows(draw, rank):
    """Attributes of a window that falls at least once into an image of 5 or more."""
    kernel, strides, dilations = (
        [draw(st.integers(1, most)) for _ in range(rank)] for most in (3, 2, 2)
    )
    pads = [draw(st.integers(0, (kernel[axis % rank] - 1) * dilations[axis % rank] // 2))
            for axis in range(2 * rank)]  # fmt: skip
    return kernel, f"strides = {strides}, dilations = {dilations}, pads = {pads}"


@given(st.data(), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]))
@settings(max_examples=40)
def test_operands_of_a_convolution_have_their_slopes(data, rank, groups):
    kernel, how = data.draw(windows(rank))
    graph = graph_of(
        CONVOLUTION.format(
            op="Conv",
            x=text(2, 2 * groups, *[5, 6][:rank]),
            w=text(groups, 2, *kernel),
            b=groups,
            how=f"group = {groups}, {how}",
        )
    )
    check(graph, numbers(graph), graph.inputs)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_pads_that_follow_from_lengths_are_the_forward_ones(mode):
    how = f'auto_pad = "{mode}", strides = [2, 2]'
    graph = graph_of(CONVOLUTION.format(op="Conv", x="1,2,5,6", w="3,2,3,2", b="3", how=how))
    check(graph, numbers(graph), graph.inputs)


@given(st.data(), st.sampled_from([1, 2]), st.sampled_from([1, 2]))
@settings(max_examples=25)
def test_operands_of_a_transposed_convolution_have_their_slopes(data, rank, groups):
    kernel, how = data.draw(windows(rank))
    graph = graph_of(
        CONVOLUTION.format(
            op="ConvTranspose",
            x=text(2, 2 * groups, *[4, 3][:rank]),
            w=text(2 * groups, 2, *kernel),
            b=2 * groups,
            how=f"group = {groups}, {how}",
        )
    )
    check(graph, numbers(graph), graph.inputs)


@given(st.data(), st.sampled_from(["MaxPool", "AveragePool"]), st.booleans())
@settings(max_examples=40)
def test_inputs_of_a_pool_have_their_slopes(data, operator, ceil):
    kernel, how = data.draw(windows(2))
    if operator == "AveragePool":
        how += f", count_include_pad = {data.draw(st.integers(0, 1))}"
    how = f"kernel_shape = {kernel}, ceil_mode = {int(ceil and min(kernel) > 1)}, {how}"
    graph = graph_of(POOL.format(op=operator, x="2,2,5,6", how=how))
    check(graph, numbers(graph), graph.inputs)


@pytest.mark.parametrize("operator", ["GlobalMaxPool", "GlobalAveragePool"])
def test_inputs_of_a_global_pool_have_their_slopes(operator):
    graph = graph_of(POOL.format(op=operator, x="2,3,4,5", how="").replace("<>", ""))
    check(graph, numbers(graph), graph.inputs)


def test_the_first_of_equal_elements_has_the_gradient():
    graph = graph_of(POOL.format(op="MaxPool", x="1,1,4", how="kernel_shape = [2], strides = [2]"))
    feeds = {"x": np.array([[[3.0, 3.0, 1.0, 2.0]]]), "d(y)": np.array([[[5.0, 7.0]]])}
    assert run(backward(graph, wrt=["x"]), feeds)[-1].tolist() == [[[5.0, 0.0, 0.0, 7.0]]]


def test_output_padding_leaves_the_gradient_of_a_transposed_convolution_a_plain_one():
    how = "strides = [2, 2], output_padding = [1, 0]"
    graph = graph_of(CONVOLUTION.format(op="ConvTranspose", x="1,2,3,4", w="2,3,2,2", b=3, how=how))
    made = check(graph, numbers(graph), graph.inputs)
    (node,) = (node for node in made.nodes if node.operator == "Conv")
    assert "output_padding" not in node.attributes
