"""Graphs from text, and graphs run with passes left out."""

import functools
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.models import filled, parse
from tests.zoo.networks import STATIC
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library
from tightship.engine.lower.pipeline import GRAPH_PASSES, SELECTION_PASSES, pass_names
from tightship.engine.lower.selection import lower
from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import Lowered
from tightship.engine.run.arena import Arena
from tightship.engine.run.executable import Executable, build
from tightship.engine.weights.allocation import allocate
from tightship.engine.weights.weight_store import Progress, WeightStore
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph, Node
from tightship.model import Model
from tightship.resource import HostResource

Array = NDArray[Any]

REWRITES = tuple(dict.fromkeys(graph_pass.__name__ for graph_pass in GRAPH_PASSES))
"""Names of the passes over the graph."""
EVERY_PASS = pass_names()
SELECTIONS = SELECTION_PASSES


def graph_of(text: str, **weights: Array) -> Graph:
    """The graph of a model in ONNX's text, initializers added by name."""
    return read_bytes(parse(text, **weights).SerializeToString())


def operators(graph: Graph) -> list[str]:
    """List the operation of each node, with fused nodes behind a plus."""
    return ["+".join(part.operator for part in (node, *node.fused)) for node in graph.nodes]


def node_named(graph: Graph, operator: str) -> Node:
    """The only node of an operator."""
    (node,) = (node for node in graph.nodes if node.operator == operator)
    return node


def inputs_of(graph: Graph) -> dict[str, Array]:
    """Numbers for every input, from a seed that depends on shapes only."""
    values = [graph.value(name) for name in graph.inputs]
    return {
        value.name: np.asarray(filled(*value.static_shape)).astype(value.dtype.numpy)
        for value in values
        if value.dtype is not None
    }


def prepared(graph: Graph, without: Collection[str] = (), threads: int = 1) -> CompiledModel:
    """A graph lowered and placed."""
    return prepare(graph, "test", Settings(threads=threads, without=without))


def built(
    placement: Placement, resource: HostResource | None = None, progress: Progress | None = None
) -> Executable:
    """A placement ready to run, its weights in memory of `resource`."""
    return build(placement, WeightStore(resource or HostResource()), progress)


def arena_of(executable: Executable) -> Arena:
    """Memory to run it in."""
    return Arena(executable, allocate(HostResource(), executable.arena_bytes, "a test"))


def lowered(graph: Graph, without: Collection[str] = ()) -> Lowered:
    """A graph lowered."""
    open_library()
    return lower(graph, 1, without)


def run(
    graph: Graph, without: Collection[str] = (), inputs: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Results of a graph that is run with some passes left out."""
    with Model(prepared(graph, without), Bounds()) as model:
        return model.run(inputs_of(graph) if inputs is None else inputs)


def expected(graph: Graph, inputs: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Results of a graph that no pass has touched, by NumPy."""
    return run(graph, (*REWRITES, "onednn", "native"), inputs)


def assert_close(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    """Results agree as float32 sums of other orders do."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=2e-5, err_msg=name)


def implementations(graph: Graph, without: Collection[str] = ()) -> list[tuple[str, str, str]]:
    """Operator, kernel and implementation of each step."""
    steps = lowered(graph, without).steps
    return [(step.operator, step.kernel, step.implementation) for step in steps]


@functools.cache
def static_graph(name: str) -> Graph:
    """The graph of a network of known shapes."""
    return read_bytes(STATIC[name]().model)


@functools.cache
def static_placement(name: str) -> Placement:
    """A network of known shapes, lowered and placed."""
    return prepared(static_graph(name)).placement
