from dataclasses import replace

import numpy as np
import pytest

from tests.graph.backward.differences import check, graph_of, numbers, run
from tightship.errors import GraphError
from tightship.graph.backward import backward, with_cross_entropy, with_squared_error

LOSS = """net (double[{shape}] x, int64[{labels}] t{weights}) => (double y) {{
    y = {operator} <{how}> (x, t{more})
}}"""


@pytest.mark.parametrize("operator", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_scores_of_a_loss_of_labels_have_their_slopes(operator, reduction, is_weighted):
    graph = graph_of(
        LOSS.format(
            shape="3,4,2",
            labels="3,2",
            operator=operator,
            how=f'reduction = "{reduction}", ignore_index = 2',
            weights=", double[4] w" if is_weighted else "",
            more=", w" if is_weighted else "",
        )
    )
    feeds = numbers(graph, low=0.1)
    feeds["t"] = np.array([[0, 2], [1, 3], [3, 3]])
    check(graph, feeds, ["x"])


def test_both_results_of_a_cross_entropy_have_their_slopes():
    graph = graph_of(
        """net (double[4,3] x, int64[4] l) => (double e, double[4,3] p) {
            e, p = SoftmaxCrossEntropyLoss (x, l)
        }"""
    )
    feeds = {**numbers(graph), "l": np.array([0, 2, 1, 1])}
    for of in (["e", "p"], ["p"]):
        check(replace(graph, outputs=tuple(of)), feeds, ["x"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("e = SoftmaxCrossEntropyLoss (x, l, w)", "w"),
        ("e = NegativeLogLikelihoodLoss (x, l, w)", "w"),
        ("e = Pad (x, p, n)", "n"),
    ],
)
def test_an_input_whose_gradient_is_not_known_is_named(text, name):
    graph = graph_of(
        f"net (float[4,3] x, int64[4] l, float[3] w, float n) => (float e) {{ {text} }}",
        p=np.array([0, 1, 0, 1]),
    )
    with pytest.raises(GraphError, match=f"is not known for its input `{name}`"):
        backward(graph, wrt=["x", name])


def test_a_squared_error_is_written_out():
    graph = graph_of("net (double[3,4] x) => (double[3,4] y) { y = Tanh (x) }")
    graph = with_squared_error(graph, "y")
    assert graph.outputs == ("y.loss",)
    feeds = numbers(graph)
    check(graph, feeds, ["x"])
    (loss,) = run(graph, feeds)
    np.testing.assert_allclose(loss, np.mean((np.tanh(feeds["x"]) - feeds["target"]) ** 2))


def test_a_cross_entropy_reads_scores_and_labels():
    graph = graph_of("net (double[3,4] x) => (double[3,4] y) { y = Tanh (x) }")
    graph = with_cross_entropy(graph, "y", "labels")
    feeds = {**numbers(graph), "labels": np.array([0, 3, 1])}
    check(graph, feeds, ["x"])
    assert backward(graph, wrt=["x"]).inputs == ("x", "labels")


def test_a_loss_needs_an_output_of_floats_and_a_new_name():
    graph = graph_of("net (double[3] x) => (int64 y, double z) { y = ArgMax (x) z = Tanh (x) }")
    with pytest.raises(GraphError, match="`y` cannot have a loss"):
        with_squared_error(graph, "y")
    with pytest.raises(GraphError, match="`x` is a value of the model"):
        with_squared_error(graph, "z", "x")
