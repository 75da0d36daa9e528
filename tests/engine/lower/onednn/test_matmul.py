import sys

import pytest

from tests.engine.graphs import graph_of
from tests.processor import HAS_AVX512
from tightship import _core
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.library import open_library
from tightship.engine.lower.onednn.choose import first_fast
from tightship.engine.lower.onednn.matmul import matmul
from tightship.engine.lower.onednn.movement import transpose
from tightship.engine.lower.steps.builder import Builder, Options


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_a_refused_product_of_stacks_adds_nothing(monkeypatch):
    """The product's operands would have to be copied into row-major layout first."""
    open_library()
    graph = graph_of(
        "g (float[2, 3, 4, 5] x, float[2, 3, 4, 6] z) => (float[2, 3, 5, 6] y)"
        " { t = Transpose <perm = [0, 1, 3, 2]> (x) y = MatMul (t, z) }"
    )
    builder = Builder(graph, 1, Options())
    transpose(builder, graph.nodes[0])
    monkeypatch.setattr(sys.modules[first_fast.__module__], "fast", lambda _: None)
    with pytest.raises(NotCoveredError):
        matmul(builder, graph.nodes[1])
    assert not builder.records.steps
    monkeypatch.undo()
    if not HAS_AVX512:
        return  # refused without that, too
    matmul(builder, graph.nodes[1])
    assert [step.operator for step in builder.records.steps] == ["Reorder", "MatMul"]
