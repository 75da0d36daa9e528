"""Tables that are gathered from where a product has them packed.

With AVX2 alone products run in NumPy, which reads a table as it is, and a transposed one as a copy.
"""

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, prepared, run
from tests.models import filled
from tightship import _core
from tightship.engine.program.program import Space
from tightship.errors import InputError

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

ROWS, COLUMNS = 1003, 64
TIED = """
g (int64[1, {count}] ids) => (float[1, {count}, 1003] y) {{
    rows = Gather (table, ids)
    x = Relu (rows)
    turned = Transpose <perm = [1, 0]> (table)
    y = MatMul (x, turned)
}}
"""
GEMM = """
g (int64[{count}] ids) => (float[{count}, 1003] y) {{
    rows = Gather (table, ids)
    x = Relu (rows)
    y = Gemm <transB = 1> (x, table)
}}
"""


def table():
    return filled(ROWS, COLUMNS) - 0.5


def weights(graph, without=()):
    """Names and bytes of the packed weights."""
    found = prepared(graph, without).placement.lowered.weights
    return [(weight.name, weight.size_bytes) for weight in found]


@pytest.mark.parametrize("count", [1, 5, 40])
@pytest.mark.parametrize("text", [TIED, GEMM], ids=["turned", "gemm"])
@pytest.mark.parametrize("without", [(), ("stream_weights",)])
def test_an_embedding_that_is_multiplied_by_is_packed_once(text, count, without):
    graph = graph_of(text.format(count=count), table=table())
    assert len(weights(graph, without)) == 1
    assert len(weights(graph, (*without, "share_tables"))) == 2
    assert_close(run(graph, without), expected(graph))


@pytest.mark.parametrize("text", [TIED, GEMM], ids=["turned", "gemm"])
def test_indices_count_from_either_end_and_are_checked(text):
    graph = graph_of(text.format(count=3), table=table())
    shape = graph.value("ids").static_shape
    for ids in ([0, -1, ROWS - 1], [-ROWS, 64, 63]):
        feeds = {"ids": np.array(ids).reshape(shape)}
        rows = np.maximum(table()[ids], 0)
        np.testing.assert_allclose(
            run(graph, inputs=feeds)["y"].reshape(3, ROWS), rows @ table().T, rtol=1e-4, atol=1e-5
        )
    with pytest.raises(InputError, match=str(ROWS)):
        run(graph, inputs={"ids": np.array([0, ROWS, 1]).reshape(shape)})


def test_a_table_with_another_reader_stays():
    text = TIED.format(count=5)
    text = text.replace("ids) => (", "ids, float[1] s) => (float[1003, 64] z, ")
    text = text.replace("    y =", "    z = Mul (table, s)\n    y =")
    graph = graph_of(text, table=table())
    assert [name for name, _ in weights(graph)] == ["table", "turned"]
    assert_close(run(graph), expected(graph))


def test_columns_are_not_taken_for_rows():
    """A square table gathered along its last axis has the shape of one gathered along its first."""
    graph = graph_of(
        """g (int64[128] ids, float[128, 128] x) => (float[128, 128] y, float[128, 128] z) {
            y = Gather <axis = 1> (table, ids)
            z = Gemm <transB = 1> (x, table)
        }""",
        table=filled(128, 128),
    )
    assert_close(run(graph), expected(graph))


def test_other_weights_are_where_they_were():
    graph = graph_of(
        """g (int64[5] ids) => (float[5, 1003] y) {
            rows = Gather (table, ids)
            a = Mul (rows, factor)
            b = Gemm (a, inner)
            y = Gemm <transB = 1> (b, table)
        }""",
        table=table(), factor=filled(COLUMNS), inner=filled(COLUMNS, COLUMNS),
    )  # fmt: skip
    assert len(weights(graph, ("share_tables",))) - len(weights(graph)) == 1
    lowered = prepared(graph).placement.lowered
    for step in lowered.steps:
        for operand in step.reads:
            if operand.space is Space.WEIGHTS and step.operator != "Gather":
                assert lowered.weights[operand.slot].name == operand.name
    assert_close(run(graph), expected(graph))
