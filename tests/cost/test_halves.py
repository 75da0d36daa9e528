"""Training steps whose values wait in bfloat16: bytes, and what they compute."""

import numpy as np
import pytest

from tests.engine.graphs import expected, inputs_of
from tests.training.nets import NETS
from tests.training.test_precision import deep, residual
from tightship.cost import cost_of, training_bytes
from tightship.cost.halves import in_precision, with_halves
from tightship.cost.schedule import schedule_of
from tightship.cost.training import training_graph, updating_graph
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes
from tightship.graph import DType
from tightship.graph.backward import Sgd
from tightship.planner import place_schedule

DEEP = {"deep": deep, "residual": residual}


def graph_of(name):
    return read_bytes({**NETS, **DEEP}[name]().model)


def arena(graph, held=()):
    return place_schedule(schedule_of(graph, held=held).schedule).plan.peak_bytes


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_step_takes_at_most_three_fifths(name):
    """Gradients may lie outside the arena: their steps are late readers like others."""
    graph = graph_of(name)
    step, gradients = training_graph(graph)
    assert arena(with_halves(step), gradients) <= 0.6 * arena(step, gradients)
    step = updating_graph(graph, Sgd())
    assert arena(with_halves(step)) <= 0.6 * arena(step)


@pytest.mark.parametrize("name", NETS)
def test_no_arena_grows(name):
    step, gradients = training_graph(graph_of(name))
    made = in_precision(step, "bfloat16", gradients)
    assert arena(made, gradients) <= arena(step, gradients)


@pytest.mark.parametrize("name", ["mlp", "transformer", *DEEP])
def test_losses_and_gradients_differ_by_roundings(name):
    step, _ = training_graph(graph_of(name))
    made = with_halves(step)
    casts = [node for node in made.nodes if node.operator == "Cast"]
    narrow = {node.outputs[0] for node in casts if made.value(node.outputs[0]).dtype is
              DType.BFLOAT16}  # fmt: skip
    assert all((node.outputs[0] in narrow) != (node.inputs[0] in narrow) for node in casts)
    feeds = inputs_of(step)
    wanted, found = expected(step, feeds), expected(made, feeds)
    assert wanted.keys() == found.keys()
    for key, value in wanted.items():
        error = np.linalg.norm(found[key] - value)
        assert error <= 2.0**-7 * np.linalg.norm(value) + 1e-6, key


def test_costs_have_rows_of_the_step_in_its_precision():
    graph = graph_of("deep")
    whole, half = (cost_of(graph, "deep", precision=each) for each in ("float32", "bfloat16"))
    assert half.cost.columns == whole.cost.columns
    assert half.trained_bytes == training_bytes(graph, precision="bfloat16")
    assert half.trained_bytes - half.beside_bytes <= 0.6 * whole.trained.columns.arena_bytes
    assert half.beside_bytes == whole.beside_bytes


def test_another_precision_is_refused():
    with pytest.raises(InputError, match=r"`precision` is 'half'; it must be `float32` or"):
        cost_of(graph_of("mlp"), "mlp", precision="half")
