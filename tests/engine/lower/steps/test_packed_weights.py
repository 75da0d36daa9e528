import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, prepared, run
from tests.models import filled
from tightship import _core
from tightship.graph import Derived, Mapped

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

TURNED = """
g (float[{count}, 48] x) => (float[{count}, {columns}] y) {{
    turned = Transpose {perm} (w)
    y = MatMul (x, turned)
}}
"""


def packed(graph):
    (weight,) = prepared(graph).placement.lowered.weights
    return weight.constant


@pytest.mark.parametrize("perm", ["", "<perm = [1, 0]>"])
@pytest.mark.parametrize(("count", "columns"), [(1, 1003), (9, 1000), (40, 1003)])
def test_a_turned_matrix_is_packed_from_the_file(perm, count, columns):
    graph = graph_of(TURNED.format(perm=perm, count=count, columns=columns), w=filled(columns, 48))
    assert isinstance(packed(graph), Mapped)
    assert_close(run(graph), expected(graph))


def test_a_matrix_of_a_lifted_gemm_is_packed_from_the_file():
    graph = graph_of(
        """g (float[3, 7, 48] x) => (float[3, 7, 1003] y) {
            flat = Reshape (x, rows)
            product = Gemm <transB = 1> (flat, w, b)
            y = Reshape (product, stack)
        }""",
        w=filled(1003, 48), b=filled(1003), rows=np.array([21, 48]), stack=np.array([3, 7, 1003]),
    )  # fmt: skip
    weights = prepared(graph).placement.lowered.weights
    assert all(isinstance(w.constant, Mapped) for w in weights if len(w.constant.shape) == 2)
    assert max(weight.size_bytes for weight in weights) >= 1003 * 48 * 4
    assert_close(run(graph), expected(graph))


def test_a_matrix_that_is_not_turned_is_not_taken_for_one():
    text = TURNED.format(perm="<perm = [0, 1]>", count=9, columns=48)
    graph = graph_of(text, w=filled(48, 48))
    assert_close(run(graph), expected(graph))


def test_what_is_computed_otherwise_is_computed():
    graph = graph_of(
        """g (float[9, 48] x) => (float[9, 1003] y) {
            half = Add (w, w)
            turned = Transpose (half)
            y = MatMul (x, turned)
        }""",
        w=filled(1003, 48),
    )
    assert isinstance(packed(graph), Derived)
    assert_close(run(graph), expected(graph))
