"""Gradients against differences: a graph is run node by node on float64 arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.models import parse
from tightship.engine.kernels import object_kernel
from tightship.engine.kernels.body import Body
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph
from tightship.graph.backward import backward

Array = NDArray[Any]

STEP = 1e-6


def run(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of a graph, in its order."""
    body = Body(graph, lambda node, types: object_kernel(node, types).run)
    return body.run([feeds[name] for name in graph.inputs], body.surroundings({}))


def graph_of(text: str, header: str = '<ir_version: 10, opset_import: ["": 20]>', **weights: Array):
    """A graph in ONNX's text."""
    return read_bytes(parse(text, header, **weights).SerializeToString())


def numbers(graph: Graph, seed: int = 0, low: float = -1.0, high: float = 1.0) -> dict[str, Array]:
    """Inputs whose floats are no closer to each other than differences need."""
    random = np.random.default_rng(seed)
    found = {}
    for name in graph.inputs:
        value = graph.value(name)
        size = int(np.prod(value.static_shape, dtype=int))
        spread = np.linspace(low, high, size + 2)[1:-1] + 1e-3
        found[name] = random.permutation(spread).reshape(value.static_shape)
        found[name] = found[name].astype(value.dtype.numpy)
    return found


def check(
    graph: Graph, feeds: Mapping[str, Array], wrt: Sequence[str], tolerance: float = 1e-5
) -> Graph:
    """Compare each gradient with differences along random directions; return the backward graph."""
    random = np.random.default_rng(1)
    ends = [name for name in graph.outputs if graph.value(name).dtype.value.startswith("float")]
    made = backward(graph, ends, wrt)
    seeds = {
        name: random.standard_normal(made.value(name).static_shape)
        for name in made.inputs[len(graph.inputs) :]
    }
    gradients = run(made, {**feeds, **seeds})[len(graph.outputs) :]

    def weighed(at: Mapping[str, Array]) -> float:
        results = dict(zip(graph.outputs, run(graph, at), strict=True))
        return sum(float(np.sum(results[e] * seeds.get(f"d({e})", 1.0))) for e in ends)

    for name, gradient in zip(wrt, gradients, strict=True):
        assert gradient.shape == feeds[name].shape
        for _ in range(3):
            way = random.standard_normal(feeds[name].shape)
            up, down = ({**feeds, name: feeds[name] + s * STEP * way} for s in (1, -1))
            slope = (weighed(up) - weighed(down)) / (2 * STEP)
            assert abs(slope - np.sum(gradient * way)) < tolerance * max(1.0, abs(slope)), name
    return made
