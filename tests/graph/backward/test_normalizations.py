import numpy as np
import pytest

from tests.engine.graphs import inputs_of
from tests.engine.graphs import run as engine_run
from tests.graph.backward.differences import check, graph_of, numbers, run
from tightship.errors import GraphError
from tightship.graph.backward import backward, with_batch_statistics

BATCH = """net (double[4,3,5] x, double[3] s, double[3] b, double[3] m, double[3] v)
           => (double[4,3,5] y{outputs}) {{
    y{names} = BatchNormalization <{how}> (x, s, b, m, v)
}}"""


def batch_norm(how="epsilon = 0.01", *, trains=False):
    outputs = ", double[3] rm, double[3] rv" if trains else ""
    names = ", rm, rv" if trains else ""
    how += ", training_mode = 1, momentum = 0.7" if trains else ""
    return graph_of(BATCH.format(outputs=outputs, names=names, how=how))


def test_batch_normalization_by_given_statistics_has_its_slopes():
    graph = batch_norm()
    check(graph, numbers(graph, low=0.1), ["x", "s", "b"])
    check(graph, numbers(graph, low=0.1), ["m", "v"])


def test_batch_normalization_by_the_statistics_of_the_batch_has_its_slopes():
    graph = with_batch_statistics(batch_norm())
    check(graph, numbers(graph), ["x", "s", "b"])


def test_training_mode_keeps_its_results_in_the_form_that_writes_statistics():
    graph = batch_norm(trains=True)
    feeds = numbers(graph, low=0.1)
    before = run(graph, feeds)
    changed = with_batch_statistics(graph, training_only=True)
    assert changed.nodes[0].operator == "BatchNormalizationTraining"
    for one, other in zip(before, run(changed, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    made = backward(graph, ["y"], ["x"])
    assert made.nodes[-1].operator == "BatchNormalizationGrad"
    assert with_batch_statistics(batch_norm(), training_only=True).nodes[0].domain == ""


def test_running_statistics_have_their_slopes_through_the_batch():
    graph = with_batch_statistics(batch_norm(trains=True), training_only=True)
    check(graph, numbers(graph), ["x", "s", "m"])


@pytest.mark.parametrize("without", [(), ("onednn",), ("onednn", "native")])
@pytest.mark.parametrize("operator", ["LayerNormalization", "BatchNormalization"])
def test_a_normalization_of_an_input_runs_though_its_data_has_no_gradient(operator, without):
    more = ", m, v" if operator == "BatchNormalization" else ""
    weights = {name: np.linspace(0.5, 1, 4, dtype=np.float32) for name in "sbmv"}
    graph = graph_of(
        f"net (float[3,4] x) => (float[3,4] y) {{ y = {operator} (x, s, b{more}) }}", **weights
    )
    made = backward(graph, wrt=["s", "b"])
    feeds = inputs_of(made)
    whole = engine_run(backward(graph, wrt=["x", "s", "b"]), inputs=feeds)
    for name, found in engine_run(made, without, feeds).items():
        np.testing.assert_allclose(found, whole[name], 1e-5, 1e-6)


def test_a_loss_by_the_mean_that_a_layer_normalization_writes_is_refused():
    graph = graph_of(
        "net (float[3,4] x, float[4] s) => (float[3,1] m) { y, m = LayerNormalization (x, s) }"
    )
    with pytest.raises(GraphError, match="first output only"):
        backward(graph, ["m"], ["x"])


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_normalization_has_its_slopes(axis):
    shape = "3,4" if axis == 1 else "4"
    graph = graph_of(
        f"""net (double[5,3,4] x, double[{shape}] s, double[{shape}] b) => (double y) {{
            y = LayerNormalization <axis = {axis}, epsilon = 0.01, stash_type = 11> (x, s, b)
        }}"""
    )
    made = check(graph, numbers(graph), graph.inputs)
    assert len(made.nodes[0].outputs) == 3


@pytest.mark.parametrize(("axis", "shape"), [(-1, "4"), (1, "3,4"), (-1, "1")])
def test_a_root_mean_square_normalization_has_its_slopes(axis, shape):
    graph = graph_of(
        f"""net (double[5,3,4] x, double[{shape}] s) => (double y) {{
            y = RMSNormalization <axis = {axis}, epsilon = 0.01, stash_type = 11> (x, s)
        }}""",
        '<ir_version: 11, opset_import: ["": 23]>',
    )
    check(graph, numbers(graph), graph.inputs)


def test_an_instance_normalization_has_its_slopes():
    graph = graph_of(
        """net (double[3,4,2,5] x, double[4] s, double[4] b) => (double y) {
            y = InstanceNormalization <epsilon = 0.01> (x, s, b)
        }"""
    )
    check(graph, numbers(graph), graph.inputs)


def test_a_group_normalization_has_its_slopes():
    graph = graph_of(
        """net (double[2,6,5] x, double[6] s, double[6] b) => (double y) {
            y = GroupNormalization <num_groups = 3, epsilon = 0.01, stash_type = 11> (x, s, b)
        }""",
        '<ir_version: 10, opset_import: ["": 21]>',
    )
    check(graph, numbers(graph), graph.inputs)
