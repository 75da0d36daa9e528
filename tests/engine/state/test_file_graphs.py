"""Graphs of a decoder's file that are bound to other lengths instead of read."""

import pytest

from tests import decoders
from tests.zoo import decoder as genai
from tightship.engine.state.decoder import Declared, decoder_of
from tightship.engine.state.file_graphs import TEMPLATES_MAX, FileGraphs
from tightship.frontend.onnx import open_bytes
from tightship.graph import Graph

MODELS = {
    "llama": decoders.llama,
    "gpt2": decoders.gpt2,
    "attention23": decoders.attention23,
    "genai": lambda: genai.decoder(genai.SMALL).model,
}

READ = {"attention23": 6}
"""Files with operators whose shapes have no symbolic rule, read for each length."""


@pytest.mark.parametrize("name", MODELS)
def test_a_bound_graph_is_the_one_that_is_read(name: str) -> None:
    file = open_bytes(MODELS[name]())
    declared = Declared.of(file.graph(None, allow_symbolic=True))
    decoder = decoder_of(file.graph, declared, 64)
    read: list[object] = []

    def graph(shapes):
        read.append(shapes)
        return file.graph(shapes)

    graphs = FileGraphs(graph, declared.inputs)
    for steps in (16, 8, 2, 1, 4, 1):
        shapes = decoder.file_shapes(steps)
        assert _contents(graphs(shapes)) == _contents(file.graph(shapes))
    assert len(read) == READ.get(name, TEMPLATES_MAX)


def test_graphs_for_a_prompt_and_a_token_are_made_no_templates() -> None:
    file = open_bytes(decoders.llama())
    declared = Declared.of(file.graph(None, allow_symbolic=True))
    decoder = decoder_of(file.graph, declared, 64)
    graphs = FileGraphs(file.graph, declared.inputs)
    prompt, token = (graphs(decoder.file_shapes(steps)) for steps in (16, 1))
    assert graphs(decoder.file_shapes(16)) is prompt
    assert graphs(decoder.file_shapes(1)) is token
    assert not graphs._templates
    graphs(decoder.file_shapes(8))
    assert len(graphs._templates) == 1


def _contents(graph: Graph) -> object:
    names = {*graph.inputs, *graph.outputs, *(n for node in graph.nodes for n in node.writes)}
    return (
        graph.inputs, graph.outputs,
        [(n.name, n.operator, n.domain, n.inputs, n.outputs) for n in graph.nodes],
        [_attributes(node) for node in graph.nodes],
        {name: (graph.value(name).dtype, graph.value(name).shape) for name in names},
        {n: c.array().tolist() for n, c in graph.known.items()},
    )  # fmt: skip


def _attributes(node) -> dict[str, object]:
    return {name: value.array().tolist() if hasattr(value, "array") else value
            for name, value in node.attributes.items()}  # fmt: skip
