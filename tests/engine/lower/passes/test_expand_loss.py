import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, implementations, operators, run
from tightship.engine.lower.passes.expand_loss import LOSSES, expand_loss

RANDOM = np.random.default_rng(3)
CLASSES = 5


def loss(operator, space="", attributes='reduction = "mean"', weighted=False, index="int64"):
    weights = (", w", f", float[{CLASSES}] w") if weighted else ("", "")
    result = f"float[4{space}]" if '"none"' in attributes else "float"
    return graph_of(
        f"g (float[4, {CLASSES}{space}] x, {index}[4{space}] t{weights[1]}) => ({result} y) "
        f"{{ y = {operator} <{attributes}> (x, t{weights[0]}) }}"
    )


def feeds(graph):
    made = {}
    for name in graph.inputs:
        value = graph.value(name)
        integers = name == "t"
        numbers = RANDOM.integers(0, CLASSES, value.static_shape) if integers else RANDOM.uniform(
            0.5, 1.5, value.static_shape
        )  # fmt: skip
        made[name] = numbers.astype(value.dtype.numpy)
    return made


@pytest.mark.parametrize("ignored", ["", ", ignore_index = 2", ", ignore_index = -7"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("space", ["", ", 3", ", 2, 3"])
@pytest.mark.parametrize("operator", LOSSES)
def test_a_decomposed_loss_is_what_it_was(operator, space, reduction, weighted, ignored):
    graph = loss(operator, space, f'reduction = "{reduction}"{ignored}', weighted)
    inputs = feeds(graph)
    if ignored.endswith("-7"):
        inputs["t"].flat[0] = -7
    assert operator not in operators(expand_loss(graph))
    assert_close(run(graph, (), inputs), expected(graph, inputs))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("operator", LOSSES)
def test_a_loss_needs_no_reference(operator, index):
    steps = implementations(loss(operator, ", 3", weighted=True, index=index))
    kernels = {kernel for _, kernel, _ in steps}
    assert kernels <= {"onednn", "native"}


def test_logarithms_asked_for_are_given():
    graph = graph_of(
        "g (float[2, 5, 3] x, int64[2, 3] t) => (float y, float[2, 5, 3] log) "
        "{ y, log = SoftmaxCrossEntropyLoss (x, t) }"
    )
    inputs = feeds(graph)
    assert_close(run(graph, (), inputs), expected(graph, inputs))


def test_an_ignored_score_that_is_infinite_adds_nothing():
    graph = loss("NegativeLogLikelihoodLoss", "", 'reduction = "sum", ignore_index = 2')
    inputs = feeds(graph)
    inputs["t"][:] = (0, 1, 2, 3)
    inputs["x"][2] = -np.inf
    wanted = -sum(inputs["x"][row, row] for row in (0, 1, 3))
    np.testing.assert_allclose(run(graph, (), inputs)["y"], wanted, rtol=1e-6)


def test_other_operators_stay():
    graph = graph_of("g (float[2, 3] x) => (float[2, 3] y) { y = LogSoftmax (x) }")
    assert operators(expand_loss(graph)) == ["LogSoftmax"]
