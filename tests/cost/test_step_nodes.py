import numpy as np

from tests.engine.graphs import graph_of
from tightship.cost.schedule import schedule_of
from tightship.cost.step_nodes import planned_nodes, renamed
from tightship.planner import Step


def test_nodes_whose_results_follow_from_shapes_are_no_steps():
    graph = graph_of(
        """net (float[2,3] x) => (float[6] y) {
            n = Size (x)
            s = Unsqueeze (n, zero)
            y = Reshape (x, s)
        }""",
        zero=np.array([0]),
    )
    names = [node.operator for node in planned_nodes(graph)]
    assert len(names) == len(schedule_of(graph).schedule.steps)
    assert "Size" not in names


def test_a_node_follows_its_step_to_other_values():
    graph = graph_of("net (float[2] x) => (float[2] y) { h = Add (x, x) y = Mul (h, x) }")
    before = schedule_of(graph).schedule.steps[1]
    names = [value.name for value in schedule_of(graph).schedule.values]
    names += ["other", "again"]
    step = Step("y", "Mul", tuple(3 if names[v] == "h" else v for v in before.reads), (4,))
    node = renamed(graph.nodes[1], step, before, names)
    assert (node.inputs, node.outputs, node.name) == (("other", "x"), ("again",), "again")
    assert renamed(graph.nodes[1], before, before, names) == graph.nodes[1]
