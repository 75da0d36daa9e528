"""Graphs of a node under construction: bodies, which read what is around them by its name."""

from collections.abc import Sequence
from operator import index

from tightship.frontend.writer import Operand, Writer
from tightship.graph import Graph, Value
from tightship.graph.ir import leading_to


def inner_writer(around: Writer) -> Writer:
    """A writer of a body, which knows what is around it; none of its values has a name of that."""
    return Writer(
        values={**around.values}, constants={**around.constants}, makers={**around.makers}
    )


def body_of(
    writer: Writer, around: Writer, inputs: Sequence[Operand], results: Sequence[Operand]
) -> Graph:
    """What an inner writer has written, whose constants the graph around it holds from now on.

    Args:
        writer: What `inner_writer` gave.
        around: What it was given.
        inputs: What a run of the body is given.
        results: What it gives; of what no node of the body makes, a copy.
    """
    made = {each for node in writer.nodes for each in node.writes}
    outputs: list[str] = []
    for result in results:
        source = result
        if source.name not in made or source.name in outputs:
            source = writer.define("result", result.dtype, result.shape)
            writer.node("Identity", (result,), (source,), {})
        outputs.append(source.name)
    nodes = leading_to(outputs, writer.nodes)
    own = dict.fromkeys(each.name for each in inputs)
    own.update(dict.fromkeys(each for node in nodes for each in node.writes))
    read = dict.fromkeys(each for node in nodes for each in node.reads if each not in own)
    for name in read:
        if name not in around.values:
            around.values[name] = writer.values[name]
            around.constants[name] = writer.constants[name]
    return Graph(
        name="body",
        inputs=tuple(each.name for each in inputs),
        outputs=tuple(outputs),
        values={name: _fixed(writer.operand(name)) for name in (*own, *read)},
        nodes=nodes,
        captures=tuple(read),
    )


def _fixed(operand: Operand) -> Value:
    """Its type, lengths as numbers: a body is translated for each, where lengths are followed."""
    return Value(operand.name, operand.dtype, tuple(map(index, operand.shape)))
