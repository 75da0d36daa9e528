from dataclasses import replace

import numpy as np
import pytest

from tests.engine.graphs import inputs_of
from tests.engine.graphs import run as engine_run
from tests.graph.backward.differences import check, graph_of, numbers, run
from tests.models import filled
from tightship.errors import GraphError
from tightship.graph import DType, Value
from tightship.graph.backward import backward, parameters


def backward_of(graph, *of, wrt):
    """The backward graph, and its nodes behind the forward ones."""
    made = backward(graph, of or None, wrt)
    assert made.nodes[: len(graph.nodes)] == graph.nodes
    return made, made.nodes[len(graph.nodes) :]


def test_the_notes_pruning_leaves_c_and_f_to_the_forward_pass():
    graph = graph_of(
        """net (double[4] A, double[4] B, double[4] D) => (double[4] F) {
            C = Mul (A, B)
            F = Add (C, D)
        }"""
    )
    made, nodes = backward_of(graph, wrt=["A", "B"])
    assert {name for node in nodes for name in node.reads} == {"A", "B", "d(F)"}
    assert made.outputs == ("F", "d(A)", "d(B)")
    check(graph, numbers(graph), ["A", "B"])


def test_the_notes_split_connection_has_one_aggregation_node_and_no_split():
    graph = graph_of(
        """net (double[4] A) => (double[4] E) {
            B = Tanh (A)
            C = Sigmoid (B)
            D = Exp (B)
            E = Mul (C, D)
        }"""
    )
    _, nodes = backward_of(graph, wrt=["A"])
    (aggregation,) = (node for node in nodes if node.operator == "Add")
    assert aggregation.outputs == ("d(B)",)
    assert [node.operator for node in nodes][-2:] == ["Add", "TanhGrad"]
    check(graph, numbers(graph), ["A"])


def test_a_gradient_of_two_values_is_two_outputs_and_runs():
    graph = graph_of("net (float[3] a, float[3] b) => (float[3] y) { y = Add (a, b) }")
    made = backward(graph, wrt=["a", "b"])
    assert made.outputs == ("y", "d(y)", "d(y)")
    feeds = inputs_of(made)
    np.testing.assert_array_equal(engine_run(made, inputs=feeds)["d(y)"], feeds["d(y)"])


def test_running_statistics_are_no_parameters():
    graph = graph_of(
        "net (float[3,4] x) => (float[3,4] y) { y = BatchNormalization (x, s, b, m, v) }",
        **{name: np.ones(4, np.float32) for name in "sbmv"},
    )
    assert parameters(graph) == ("s", "b")


def test_a_row_of_noughts_has_a_norm_without_slope():
    graph = graph_of("net (double[2,3] x) => (double[2,1] y) { y = ReduceL2 (x, axes) }",
                     axes=np.array([1]))  # fmt: skip
    made = backward(graph, wrt=["x"])
    feeds = {"x": np.array([[0.0, 0, 0], [3, 0, 4]]), "d(y)": np.ones((2, 1))}
    np.testing.assert_allclose(run(made, feeds)[1], [[0, 0, 0], [0.6, 0, 0.8]])


def test_gradients_of_many_readers_are_joined_as_they_come():
    reads = " ".join(f"r{i} = {f} (x)" for i, f in enumerate(["Exp", "Sin", "Cos", "Tanh"]))
    graph = graph_of(f"net (double[4] x) => (double[4] y) {{ {reads} y = Sum (r0, r1, r2, r3) }}")
    _, nodes = backward_of(graph, wrt=["x"])
    joined = [node for node in nodes if node.operator == "Add"]
    assert len(joined) == 3
    assert all(len(node.inputs) == 2 for node in joined)
    assert joined[-1].outputs == ("d(x)",)
    check(graph, numbers(graph), ["x"])


def test_a_scalar_starts_with_one_and_any_other_value_with_an_input():
    graph = graph_of(
        """net (double[4] x) => (double[4] y, double s) {
            y = Tanh (x)
            s = ReduceSum <keepdims = 0> (y)
        }"""
    )
    assert backward(graph, ["s"], ["x"]).inputs == ("x",)
    assert backward(graph, ["y"], ["x"]).inputs == ("x", "d(y)")
    made = check(graph, numbers(graph), ["x"])
    assert made.inputs == ("x", "d(y)")
    assert made.value("d(y)").shape == (4,)


def test_a_value_that_is_an_end_and_is_read_has_the_sum():
    graph = graph_of("net (double[4] x) => (double[4] a, double[4] b) { a = Exp (x) b = Tanh (a) }")
    check(graph, numbers(graph), ["x"])
    assert backward(graph, wrt=["a"]).outputs[-1] == "d(a).2"


def test_nothing_is_written_for_what_is_not_wanted():
    graph = graph_of(
        "net (double[2,3] x) => (double y) { h = MatMul (x, w) r = Relu (h) y = MatMul (r, v) }",
        w=filled(3, 4).astype(np.float64), v=filled(4, 5).astype(np.float64),
    )  # fmt: skip
    _, nodes = backward_of(graph, wrt=["v"])
    assert [node.operator for node in nodes] == ["Gemm"]
    assert nodes[0].reads == ("r", "d(y)")


def test_a_value_that_nothing_leads_to_has_zeros():
    graph = graph_of("net (double[4] x, double[3] z) => (double y) { y = ReduceSum (x) }")
    made = backward(graph, wrt=["z", "x"])
    feeds = {**numbers(graph), "d(y)": np.ones(1)}
    assert [r.tolist() for r in run(made, feeds)[1:]] == [[0, 0, 0], [1, 1, 1, 1]]


def test_steps_have_no_slope():
    graph = graph_of(
        "net (double[4] x) => (double[4] y) { s = Sign (x) t = Mul (s, x) y = Mul (t, x) }"
    )
    feeds = numbers(graph)
    gradient = run(backward(graph, wrt=["x"]), {**feeds, "d(y)": np.ones(4)})[-1]
    np.testing.assert_allclose(gradient, 2 * np.abs(feeds["x"]))


def test_parameters_are_constants_of_floats_that_are_no_plain_numbers():
    graph = graph_of(
        "net (float[2,3] x) => (float y) { a = Mul (x, s) b = MatMul (a, w) y = Reshape (b, t) }",
        s=np.float32(3), w=filled(3, 4), t=np.array([8]),
    )  # fmt: skip
    assert parameters(graph) == ("w",)


def test_weights_of_a_layer_of_one_channel_are_parameters():
    graph = graph_of(
        "net (float[2,3] x) => (float y) { a = Gemm (x, w, b) c = Mul (a, s) y = PRelu (c, p) }",
        w=filled(3, 1), b=filled(1), s=filled(1), p=filled(1),
    )  # fmt: skip
    assert parameters(graph) == ("w", "b", "p")


def test_scales_of_a_resize_are_no_parameters_and_what_it_resizes_is():
    graph = graph_of(
        "net (float[4,6] x) => (float y) { a = Resize (p, , scales) y = Add (x, a) }",
        p=filled(2, 3), scales=np.float32([2, 2]),
    )  # fmt: skip
    assert parameters(graph) == ("p",)


def test_values_of_one_hot_are_no_parameters():
    graph = graph_of(
        "net (int64[3] i) => (float y) { a = OneHot (i, depth, two) y = MatMul (a, w) }",
        depth=np.array(5), two=np.float32([0, 1]), w=filled(5, 4),
    )  # fmt: skip
    assert parameters(graph) == ("w",)


def test_a_mask_is_no_parameter_and_a_position_is():
    graph = graph_of(
        "net (float[2,3] x) => (float y) { a = Add (x, m) b = Add (a, where) y = Add (b, bias) }",
        m=np.float32([[0, -1e4, -1e9]] * 2), where=filled(2, 3), bias=np.float32([0, -1e9, 1]),
    )  # fmt: skip
    assert parameters(graph) == ("where", "bias")


def test_what_is_known_of_a_weight_is_forgotten():
    graph = graph_of(
        "net (float[2,3] x) => (float y) { r = Gather (w, i) y = Add (x, r) }",
        w=filled(4, 3), i=np.array([0, 2]),
    )  # fmt: skip
    assert "r" in graph.known
    assert "r" not in backward(graph).known
    assert "r" in backward(graph, wrt=["x"]).known


def test_what_is_known_of_a_shape_stays_known():
    text = "net (float[2,3] x) => (float y) { s = Shape (w) h = MatMul (x, w) y = Add (h, b) }"
    graph = graph_of(text, w=filled(3, 4), b=filled(4))
    assert "s" in backward(graph).known


def test_an_operator_without_a_rule_is_named_with_a_way_out():
    text = "net (double[4] x) => (double y) { h = ReduceProd (x, zero) y = Tanh (h) }"
    graph = graph_of(text, zero=np.array([0]))
    with pytest.raises(GraphError, match=r"ReduceProd.*has no rule.*`x` leads through.*`Layer`"):
        backward(graph, wrt=["x"])
    assert backward(graph, wrt=["h"]).outputs[-1] == "d(h)"


def test_an_open_shape_is_refused_with_what_to_give():
    graph = graph_of("net (double[4] x, double[4] b) => (double y) { y = Mul (x, b) }")
    graph = replace(graph, values={**graph.values, "y": Value("y", DType.FLOAT64, ("n",))})
    with pytest.raises(GraphError, match=r"`y` needs its shape.*give the shapes"):
        backward(graph, wrt=["x"])


@pytest.mark.parametrize("name", ["nothing", "i"])
def test_only_floats_of_the_graph_have_gradients(name):
    graph = graph_of("net (double[4] x, int64[1] i) => (double y) { y = Gather (x, i) }")
    with pytest.raises(GraphError, match=f"`{name}` has no gradient"):
        backward(graph, wrt=[name])


def test_a_gradients_name_that_is_taken_is_numbered():
    graph = graph_of("net (double[4] x, double[4] z) => (double y) { y = Mul (x, z) }")
    once = backward(graph, wrt=["x"])
    twice = backward(once, ["d(x)"], ["z"])
    assert once.outputs == ("y", "d(x)")
    assert twice.inputs[-1] == "d(d(x))"
    assert len(set(twice.values)) == len(twice.values)
