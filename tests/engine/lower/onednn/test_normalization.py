"""Softmax along rows: by which kernel, and how exact."""

import numpy as np
import pytest

from tests.engine.graphs import graph_of, implementations, inputs_of, prepared
from tightship.engine.cache.bounds import Bounds
from tightship.engine.lower.steps.layouts import register_floats
from tightship.model import Model

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 21, 32, 33, 40, 64, 91, 130)


def softmax_graph(length):
    body = "y = Softmax <axis = -1> (x)"
    return graph_of(f"g (float[2, 37, {length}] x) => (float[2, 37, {length}] y) {{ {body} }}")


@pytest.mark.parametrize("length", LENGTHS)
def test_softmax_along_rows_is_exact_and_the_same_on_any_threads(length):
    graph = softmax_graph(length)
    feeds = {"x": inputs_of(graph)["x"] * np.float32(4)}
    exact = np.exp(feeds["x"].astype(np.float64) - feeds["x"].max(-1, keepdims=True))
    exact /= exact.sum(-1, keepdims=True)
    found = []
    for threads in (1, 3):
        with Model(prepared(graph, threads=threads), Bounds()) as model:
            found.append(model.run(feeds)["y"].copy())
    np.testing.assert_allclose(found[0], exact, rtol=2e-6)
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("length", [5, 130])
def test_rows_are_the_cores_with_avx512(length):
    ((_, kernel, _),) = implementations(softmax_graph(length))
    assert (kernel == "native") == (register_floats() == 16)
