"""Caches of another type than the file's, in the graph of a session."""

import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.engine.state.cache_types import with_type
from tightship.engine.state.decoder import Cache
from tightship.engine.state.pairs import CachePair
from tightship.engine.state.stored_caches import store_caches
from tightship.errors import GraphError
from tightship.graph import DType, Graph, Node, Value

PLAIN = Cache(CachePair("past", "present", 2), DType.FLOAT32, (1, 2, 16, 8), True)


@pytest.mark.parametrize("make", [decoders.llama, decoders.genai, decoders.attention23])
def test_graphs_of_exporters_append_rounded_rows(make) -> None:
    made = decoder(make(), 16).with_cache_type("int8")
    graph = made.graph(2, last=False)
    operators = [node.operator for node in graph.nodes]
    assert operators.count("AppendRows") == operators.count("WidenRows") == len(made.caches) == 4
    assert "TensorScatter" not in operators
    for cache in made.caches:
        for name in (cache.pair.past, cache.pair.present):
            assert graph.value(name).dtype is DType.INT8
            assert graph.value(name).shape == (*cache.file_shape[:3], cache.file_shape[3] + 4)


def graph_of(*nodes: Node) -> Graph:
    """Graph over a cache, two new rows and a start."""
    values = {
        name: Value(name, DType.FLOAT32, PLAIN.shape) for name in ("past", "present", "y", "same")
    }
    values["new"] = Value("new", DType.FLOAT32, (1, 2, 2, 8))
    values["start"] = Value("start", DType.INT64, (1,))
    return Graph("g", ("past", "new", "start"), ("present", "y"), values, nodes, {})


APPEND = Node("append", "TensorScatter", ("same", "new", "start"), ("present",), {"axis": 2})
OTHER = Node("other", "Neg", ("present",), ("y",))
SAME = Node("same", "Identity", ("past",), ("same",))


def test_readers_get_the_result_widened() -> None:
    made = store_caches(graph_of(SAME, APPEND, OTHER), [with_type(PLAIN, "int8")])
    append, widen, last = made.nodes
    assert (append.operator, append.inputs, append.outputs) == (
        "AppendRows", ("past", "new", "start"), ("present",),
    )  # fmt: skip
    assert (widen.operator, widen.inputs, last.inputs) == ("WidenRows", ("present",), widen.outputs)
    assert made.value(widen.outputs[0]).shape == PLAIN.shape


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ((SAME, APPEND, Node("r", "Neg", ("past",), ("y",))), r"`r` \(Neg\) reads `past` before"),
        ((SAME, APPEND, Node("r", "Neg", ("same",), ("y",))), r"`r` \(Neg\) reads `past` before"),
        (
            (Node("r", "Neg", ("past",), ("present",)), OTHER),
            r"`r` \(Neg\) makes `present`, not an app",
        ),
    ],
)
def test_caches_that_are_not_appended_to_alone_are_refused(nodes, match) -> None:
    graph = graph_of(*nodes)
    with pytest.raises(GraphError, match=f"cannot be stored as int8: {match}"):
        store_caches(graph, [with_type(PLAIN, "int8")])
    own = PLAIN._replace(dtype=DType.FLOAT16)  # the file's own type needs no append
    assert store_caches(graph, [own]).nodes == graph.nodes
