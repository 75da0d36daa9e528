"""Bodies of control-flow nodes under construction, which read outer values by name."""

from collections.abc import Sequence
from operator import index

from tightship.frontend.writer import Operand, Writer
from tightship.graph import Graph, Value
from tightship.graph.ir import leading_to


def inner_writer(around: Writer) -> Writer:
    """Return a writer of a body that knows the outer values and avoids their names."""
    return Writer(
        values={**around.values}, constants={**around.constants}, makers={**around.makers}
    )


def body_of(
    writer: Writer, around: Writer, inputs: Sequence[Operand], results: Sequence[Operand]
) -> Graph:
    """Return the graph of a body; outer constants that it reads are added to `around`.

    Args:
        writer: Writer from `inner_writer`.
        around: Outer writer.
        inputs: Inputs of the body.
        results: Outputs of the body; those that none of its nodes computes are copied.
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
    """Return the type with lengths as numbers: a body is translated again for other lengths."""
    return Value(operand.name, operand.dtype, tuple(map(index, operand.shape)))
