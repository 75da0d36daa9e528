"""A function of jax, run by Tightship and by jax."""

import numpy as np
import pytest

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.frontend.jax import read
from tightship.graph import Graph
from tightship.graph.backward import DOMAIN
from tightship.graph.backward.operators import types_of
from tightship.model import Model

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
jnp = jax.numpy


def traced(function, *arguments) -> jax.stages.Traced:
    return jax.jit(function).trace(*arguments)


def run(graph: Graph, arguments):
    feeds = zip(graph.inputs, jax.tree.leaves(arguments), strict=True)
    with Model(prepare(graph, "test", Settings()), Bounds()) as model:
        return list(model.run({name: np.asarray(each) for name, each in feeds}).values())


def check(function, *arguments, tolerance=2e-5) -> Graph:
    """Hold every result against jax's, relative to the largest of its elements."""
    graph = read(traced(function, *arguments))
    found = run(graph, arguments)
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(found) == len(wanted)
    for name, one, other in zip(graph.outputs, found, wanted, strict=True):
        assert one.dtype == other.dtype, name
        margin = tolerance * max(1e-3, float(np.abs(np.asarray(other, np.float32)).max(initial=0)))
        np.testing.assert_allclose(one, other, tolerance, margin, err_msg=name)
    check_types(graph)
    return graph


def check_types(graph: Graph) -> None:
    """Nodes of training have the types that their table gives."""
    for node in graph.nodes:
        if node.domain == DOMAIN:
            kinds = [graph.values[name] if name else None for name in node.inputs]
            given = [None if each is None else (each.dtype, each.shape) for each in kinds]
            wanted = types_of(node.operator, given, node.attributes)
            for name, kind in zip(node.outputs, wanted, strict=False):
                assert not name or (graph.values[name].dtype, graph.values[name].shape) == kind
