"""Gradients of matrices that are read transposed: no step turns them, and none is changed."""

import numpy as np
import pytest

from tests.engine.graphs import graph_of, operators, run
from tests.graph.backward.differences import numbers
from tightship.engine.lower.passes.transpose_gradients import transpose_gradients
from tightship.graph.backward import Sgd, backward, with_updates

BODY = "t = Transpose <perm = [1, 0]> (w) y = MatMul (x, t)"


def updating(body):
    graph = graph_of(f"net (float[6,4] x) => (float[6,9] y) {{ {body} }}",
                     w=np.ones((9, 4), np.float32))  # fmt: skip
    graph = backward(graph, ["y"], ["w"])
    return with_updates(graph, ["w"], graph.outputs[1:], Sgd(0.1))


def test_a_product_is_made_as_its_reader_wants_it():
    graph = updating(BODY)
    turned = transpose_gradients(graph)
    assert operators(graph)[-3:] == ["Gemm", "Transpose", "SgdUpdate"]
    assert operators(turned)[-2:] == ["Gemm", "SgdUpdate"]
    assert turned.value(turned.nodes[-1].inputs[1]).shape == (9, 4)


@pytest.mark.parametrize("without", [(), ("onednn",), ("onednn", "native")])
def test_the_weight_is_what_it_would_be(without):
    graph = updating(BODY)
    feeds = numbers(graph)
    wanted = run(graph, (*without, "transpose_gradients"), feeds)
    for name, array in run(graph, without, feeds).items():
        np.testing.assert_allclose(array, wanted[name], 1e-6, 1e-6, err_msg=name)


def test_a_product_that_is_also_read_as_it_is_stays():
    graph = graph_of(
        """net (float[6,4] x, float[6,9] d) => (float[9,4] z, float[4,9] y) {
            y = Gemm <transA = 1> (x, d)
            z = Transpose <perm = [1, 0]> (y)
        }"""
    )
    assert transpose_gradients(graph).nodes == graph.nodes
