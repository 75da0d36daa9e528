"""Snapshots of modules: small, sent to another process, with the plan of the module."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.small_models import dense
from tightship.engine.compile.compile_graph import Settings
from tightship.errors import InputError
from tightship.frontend.snapshot import snapshot
from tightship.graph import Mapped, MappedFile
from tightship.graph.absent import is_absent
from tightship.loading.opening import read_graph


class Opened:
    """An opened module, whose weights are constants of floats."""

    name = "Net"

    def __init__(self, graph):
        self._graph = graph
        held = {n: in_memory(n, c) for n, c in graph.constants.items()}
        self.held, self.weights = held, frozenset(map(id, held.values()))

    def graph(self, shapes):
        assert shapes is None
        return replace(self._graph, constants=self.held)


def in_memory(name, constant):
    data = constant.array().tobytes()
    file = MappedFile.of_bytes(data, Path(name))
    return Mapped(file, 0, constant.dtype, constant.shape)


@pytest.fixture
def graph():
    return read_graph(dense()[0], Settings({"x": (4, 32)}))


def test_a_snapshot_has_the_plan_of_its_module(graph):
    taken = pickle.loads(pickle.dumps(snapshot(Opened(graph), None)))
    plan = tightship.plan(taken)
    assert plan.model == "Net"
    assert plan.inputs == {"x": "4x32 float32"}
    assert plan.arena_bytes == tightship.plan(dense()[0], shapes={"x": (4, 32)}).arena_bytes
    assert plan.weights_bytes == tightship.plan(dense()[0], shapes={"x": (4, 32)}).weights_bytes


def test_weights_stay_behind_and_other_constants_come_along(graph):
    opened = Opened(graph)
    taken = snapshot(opened, None)
    assert all(map(is_absent, taken.whole.constants.values()))
    opened.weights = frozenset()
    for name, constant in snapshot(opened, None).whole.constants.items():
        np.testing.assert_array_equal(constant.array(), graph.constants[name].array())


def test_a_snapshot_cannot_be_run(graph):
    with pytest.raises(InputError, match="has a shape and no elements"):
        tightship.load(snapshot(Opened(graph), None))
