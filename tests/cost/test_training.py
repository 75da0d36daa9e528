from dataclasses import replace

import numpy as np
import pytest

from tests.models import filled, parse
from tests.planner.oracles import Replay
from tests.planner.scheme.graphs import replay
from tests.zoo.catalogue import SMALL
from tests.zoo.inception_bn import inception_bn
from tightship.cost.schedule import schedule_of
from tightship.cost.training import training_graph, updating_graph
from tightship.errors import GraphError
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import Adam, Sgd, backward, with_batch_statistics
from tightship.planner import AliasKind, place_schedule
from tightship.planner.coarse import in_blocks
from tightship.planner.reorder import reorder
from tightship.planner.scheme import walk


def graph_of(text, **weights):
    return read_bytes(parse(text, **weights).SerializeToString())


def perceptron(batch=16, wide=64):
    """The note's two layers: fc1, act1, fc2, and a softmax called out that the loss reads."""
    graph = graph_of(
        f"""net (float[{batch},{wide}] A, int64[{batch}] labels) => (float loss) {{
            fc1 = Gemm (A, w1, b1)
            act1 = Sigmoid (fc1)
            fc2 = Gemm (act1, w2, b2)
            loss, out = SoftmaxCrossEntropyLoss (fc2, labels)
        }}""",
        w1=filled(wide, wide), b1=filled(wide), w2=filled(wide, 10), b2=filled(10),
    )  # fmt: skip
    weights = ["w1", "b1", "w2", "b2"]
    made = backward(graph, ["loss"], [*weights, "A"])
    return schedule_of(made, held=[f"d({name})" for name in weights]).schedule


def pairs(schedule, aliases):
    return {(schedule.values[a.output].name, schedule.values[a.input].name) for a in aliases}


def test_the_notes_perceptron_is_in_place_at_act1_d_fc1_out_and_d_fc2():
    schedule = perceptron()
    taken = pairs(schedule, place_schedule(schedule).buffers.in_place)
    assert {("act1", "fc1"), ("out", "fc2"), ("d(fc2)", "out")} <= taken
    offered = pairs(schedule, [alias for step in schedule.steps for alias in step.aliases])
    over_fc1 = {("d(fc1)", "act1"), ("d(fc1)", "d(act1)")}
    assert over_fc1 <= offered
    assert len(over_fc1 & taken) == 1


def test_the_notes_perceptron_shares_between_d_act1_and_d_a_where_d_fc1_is_over_act1():
    schedule = perceptron()
    index = {value.name: place for place, value in enumerate(schedule.values)}
    steps = tuple(
        replace(step, aliases=tuple(a for a in step.aliases if a.input != index["d(act1)"]))
        for step in schedule.steps
    )
    blocks = walk(replace(schedule, steps=steps)).of_value
    assert blocks[index["d(fc1)"]] == blocks[index["act1"]] == blocks[index["fc1"]]
    assert blocks[index["d(A)"]] == blocks[index["d(act1)"]] != blocks[index["d(fc1)"]]


def test_the_notes_perceptron_takes_as_much_as_two_layers_and_a_little():
    schedule = perceptron()
    plan = place_schedule(schedule).plan
    assert plan.peak_bytes == plan.lower_bound_bytes
    assert plan.peak_bytes < 2.2 * 16 * 64 * 4


def test_a_model_that_ends_in_a_number_has_its_loss():
    graph = graph_of(
        """net (float[4,8] x, int64[4] t) => (float loss, float[4,3] y) {
            y = MatMul (x, w)
            loss = SoftmaxCrossEntropyLoss (y, t)
        }""",
        w=filled(8, 3),
    )
    made, gradients = training_graph(graph)
    assert made.inputs == ("x", "t")
    assert made.outputs == ("loss", "d(w)")
    assert gradients == ("d(w)",)


def test_other_models_have_a_squared_error_on_each_output_of_floats():
    graph = graph_of(
        """net (float[4,8] x) => (float[4,3] y, int64[4] i, float[4,3] z) {
            y = MatMul (x, w)
            z = Tanh (y)
            i = ArgMax <axis = 1, keepdims = 0> (y)
        }""",
        w=filled(8, 3),
    )
    made, _ = training_graph(graph)
    assert made.inputs == ("x", "y.target", "z.target")
    assert made.outputs == ("y.loss", "z.loss", "d(w)")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("net (float[4] x) => (float[4] y) { y = Tanh (x) }", "no weights"),
        ("net (float[4,2] x) => (int64[4] y) { h = MatMul (x, w) y = ArgMax (h) }", "no output"),
        ("net (float[4,2] x) => (float y) { h = MatMul (x, w) y = Det (h) }", "`Det"),
    ],
)
def test_why_a_model_cannot_be_trained_is_said(text, reason):
    text = text.replace("float[4,2] x", "float[2,2] x")
    graph = graph_of(text, **({"w": filled(2, 2)} if "w" in text else {}))
    with pytest.raises(GraphError, match=reason.replace("`Det", "Det")):
        training_graph(graph)


def test_gradients_of_weights_lie_outside_under_any_shape():
    graph = graph_of("net (float[2,4,8] x) => (float y) { h = MatMul (x, w) y = Add (h, b) }",
                     w=filled(8, 3), b=filled(1, 1, 3))  # fmt: skip
    made, gradients = training_graph(graph)
    made = schedule_of(made, held=gradients)
    outside = {value.name for value in made.schedule.values if value.external}
    assert set(gradients) < outside
    assert made.input_bytes == (64 + 24) * 4
    arena = {v.name: v.size_bytes for v in made.schedule.values if not v.external}
    assert all(size >= 24 * 4 or name == "y.loss" for name, size in arena.items() if size > 4)


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet50_folded", "unet", "inception_bn"])
def test_plans_of_training_keep_values_whole(name):
    case = inception_bn(2, 96, 4) if name == "inception_bn" else SMALL[name](2)
    made, gradients = training_graph(with_batch_statistics(read_bytes(case.model)))
    fine = schedule_of(made, held=gradients).schedule
    assert AliasKind.IN_PLACE in {alias.kind for step in fine.steps for alias in step.aliases}
    for schedule in (fine, in_blocks(fine)):
        planned = place_schedule(schedule)
        Replay(schedule, planned.buffers, planned.plan.offset_bytes).run()
        replay(schedule, walk(schedule))
    assert np.all(planned.plan.offset_bytes >= 0)


@pytest.mark.parametrize("optimizer", [Sgd(), Adam()])
def test_gradients_are_consumed_by_their_updates_at_once(optimizer):
    """Two layers' gradients of weights of a deep perceptron are live at a time, not all of them."""
    layers = "\n".join(f"h{i + 1} = Gemm (h{i}, w{i})\n r{i} = Relu (h{i + 1})" for i in range(8))
    weights = {f"w{i}": filled(32, 32) for i in range(8)}
    graph = graph_of(f"net (float[1,32] h0) => (float[1,32] h8) {{ {layers} }}", **weights)
    schedule = schedule_of(updating_graph(graph, optimizer)).schedule
    found = reorder(schedule)
    assert found.given_peak_bytes >= 8 * 32 * 32 * 4
    assert found.plan.plan.peak_bytes < 2 * 32 * 32 * 4
    Replay(found.plan.schedule, found.plan.buffers, found.plan.plan.offset_bytes).run()
