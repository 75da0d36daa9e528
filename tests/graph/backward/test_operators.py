import numpy as np
import pytest
from onnx.defs import get_all_schemas

from tests.graph.backward.differences import check, graph_of, numbers, run
from tests.graph.backward.test_losses import LOSS
from tests.graph.backward.test_normalizations import batch_norm
from tests.graph.backward.test_recurrent import network
from tests.graph.backward.test_rules import CASES, made
from tightship.engine.kernels import numpy_kernel
from tightship.graph import DType
from tightship.graph.backward import (
    DOMAIN,
    OPERATORS,
    Adam,
    Sgd,
    backward,
    with_batch_statistics,
    with_dropout,
    with_running_statistics,
    with_updates,
)
from tightship.graph.backward.operators import types_of
from tightship.graph.operators import named

WINDOW = "kernel_shape = [2, 2], strides = [2, 2]"
OTHERS = {
    "batch": lambda: with_batch_statistics(batch_norm()),
    "convolution": lambda: graph_of(
        "net (double[1,2,5,5] x, double[3,2,2,2] w) => (double y) { y = Conv (x, w) }"
    ),
    "layer": lambda: graph_of(
        """net (double[5,3] x, double[3] s) => (double y) {
            y = LayerNormalization <stash_type = 11> (x, s)
        }"""
    ),
    "average": lambda: graph_of(
        f"net (double[1,2,5,5] x) => (double y) {{ y = AveragePool <{WINDOW}> (x) }}"
    ),
    "largest": lambda: graph_of(
        f"net (double[1,2,5,5] x) => (double y) {{ y = MaxPool <{WINDOW}> (x) }}"
    ),
    "product": lambda: graph_of(
        "net (double[2,3,4] x, double[2,4,5] w) => (double y) { y = MatMul (x, w) }"
    ),
    "dropout": lambda: with_dropout(graph_of(
        "net (double[3,4] x) => (double y, bool mask) { y, mask = Dropout (x) }"
    ))[0],
    "gru": lambda: network("GRU"),
    "lstm": lambda: network("LSTM"),
    "rnn": lambda: network("RNN"),
    "swish": lambda: graph_of(
        "net (double[4] x) => (double y) { y = Swish <alpha = 0.8> (x) }",
        '<ir_version: 10, opset_import: ["": 24]>',
    ),
    **{
        operator: lambda operator=operator: graph_of(
            LOSS.format(shape="3,4", labels="3", operator=operator, how="", weights="", more="")
            .replace("<>", "")
        )
        for operator in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
    },
}  # fmt: skip


def backward_graphs():
    """A graph with each operator of our own, by its name."""
    graphs = [*(made(*CASES[name]) for name in CASES), *(make() for make in OTHERS.values())]
    for graph in graphs:
        wrt = [n for n in graph.inputs if graph.value(n).dtype is DType.FLOAT64]
        whole = backward(graph, graph.outputs[:1], wrt)
        for node in whole.nodes:
            if node.domain == DOMAIN:
                yield node, whole
    for optimizer in (Sgd(), Sgd(momentum=0.9), Adam(), Sgd(clip_norm=1.0)):
        whole = updated(optimizer)
        yield from ((node, whole) for node in whole.nodes[-3:] if node.domain == DOMAIN)
    whole = running()
    yield whole.nodes[-1], whole


def running():
    graph = graph_of(
        "net (double[2,3] x) => (double[3] y) { y = ReduceMean <axes = [0], keepdims = 0> (x) }",
        '<ir_version: 10, opset_import: ["": 13]>',
    )
    return with_running_statistics(graph, {"r": ("y", 0.9, 0.1)})


def updated(optimizer):
    graph = graph_of(
        "net (double[2,3] x) => (double[2,4] y) { y = MatMul (x, w) }", w=np.ones((3, 4))
    )
    step = backward(graph, ["y"], ["w"])
    return with_updates(step, ["w"], step.outputs[1:], optimizer)


NODES = {node.operator: (node, graph) for node, graph in backward_graphs()}


def kind_of(graph, name):
    return (graph.value(name).dtype, graph.value(name).shape) if name else None


def kernel_of(node, graph):
    types = [
        [graph.value(n) if n else None for n in names] for names in (node.inputs, node.outputs)
    ]
    kernel = numpy_kernel(node, *types, {**graph.constants, **graph.known})
    assert kernel is not None, node
    return kernel


def test_every_operator_has_a_rule_that_writes_it_a_signature_and_a_kernel():
    assert set(NODES) == set(OPERATORS)
    assert set(OPERATORS) | {"Layer", "LayerGrad"} == named("numpy", DOMAIN)


@pytest.mark.parametrize("operator", OPERATORS)
def test_nodes_are_typed_and_in_place_as_the_table_says(operator):
    node, graph = NODES[operator]
    signature = OPERATORS[operator]
    required = [name for name in signature.inputs if not name.endswith("?")]
    assert len(required) <= len(node.inputs) <= len(signature.inputs)
    assert len(node.outputs) <= len(signature.outputs)
    given = [kind_of(graph, name) for name in node.inputs]
    types = types_of(operator, given, node.attributes)
    for name, kind in zip(node.outputs, types, strict=False):
        assert kind_of(graph, name) in (None, kind)
    assert kernel_of(node, graph).in_place == signature.in_place


@pytest.mark.parametrize("operator", [name for name in OPERATORS if OPERATORS[name].in_place])
def test_kernels_write_over_what_the_table_says(operator):
    node, graph = NODES[operator]
    random = np.random.default_rng(0)
    kernel = kernel_of(node, graph)

    def array(name):
        value = graph.value(name)
        if graph.constant(name) is not None:
            return graph.constant(name).array()
        if value.dtype is DType.INT64:
            return np.full(value.static_shape, int(name == "step"), np.int64)
        return random.uniform(0.1, 0.9, value.static_shape)

    inputs = [array(name) if name else None for name in node.inputs]
    empty = [np.empty(graph.value(n).static_shape) if n else None for n in node.outputs]
    scratch = np.empty(kernel.scratch_bytes, np.uint8) if kernel.scratch_bytes else None
    kernel.run(inputs, empty, scratch)
    for output, source in kernel.in_place:
        given = [None if each is None else each.copy() for each in inputs]
        written = [None if each is None else np.empty_like(each) for each in empty]
        written[output] = given[source]
        kernel.run(given, written, scratch)
        assert np.array_equal(written[output], empty[output])


def test_rules_exist_for_operators_that_onnx_has():
    known = {schema.name for schema in get_all_schemas() if schema.domain == ""}
    assert named("gradient") <= known


def test_the_gradient_of_swish_is_its_slope():
    graph = OTHERS["swish"]()
    check(graph, numbers(graph), ["x"])


def test_running_statistics_keep_a_share_of_what_they_were():
    x, r = np.arange(6.0).reshape(2, 3), np.ones(3)
    (_, found) = run(running(), {"x": x, "r": r})
    np.testing.assert_allclose(found, 0.9 * r + 0.1 * x.mean(0))


def test_momentum_and_a_rate_of_the_run_are_those_of_the_formula():
    graph = graph_of(
        "net (double[2,3] x) => (double[2,4] y) { y = MatMul (x, w) }", w=np.ones((3, 4))
    )
    step = backward(graph, ["y"], ["w"])
    graph = with_updates(step, ["w"], step.outputs[1:], Sgd(0.5, 0.8), rate="rate")
    feeds = numbers(graph) | {"rate": np.array(0.25, np.float32)}
    gradient = feeds["x"].T @ (np.ones((2, 4)) * feeds["d(y)"])
    velocity = 0.8 * feeds["w.velocity"] + gradient
    (_, *found) = run(graph, feeds)
    np.testing.assert_allclose(found, [feeds["w"] - 0.25 * velocity, velocity])


def test_updates_are_those_of_their_formulas():
    feeds = numbers(updated(Adam())) | {"step": np.array(3)}
    feeds["w.square"] = np.abs(feeds["w.square"])
    w, m, v = feeds["w"], feeds["w.mean"], feeds["w.square"]
    gradient = np.ones((2, 4)) * feeds["d(y)"]
    gradient = feeds["x"].T @ gradient
    (_, found) = run(updated(Sgd(0.5)), {k: feeds[k] for k in ("x", "d(y)", "w")})
    np.testing.assert_allclose(found, w - 0.5 * gradient)
    (_, *found) = run(updated(Adam(0.1, 0.8, 0.9, 1e-6)), feeds)
    m, v = 0.8 * m + 0.2 * gradient, 0.9 * v + 0.1 * gradient**2
    change = (m / (1 - 0.8**3)) / (np.sqrt(v / (1 - 0.9**3)) + 1e-6)
    for one, other in zip(found, (w - 0.1 * change, m, v), strict=True):
        np.testing.assert_allclose(one, other)
