"""Conversion of a frontend's writer to a graph."""

from collections.abc import Iterable, Sequence

from tightship.frontend.writer import Operand, Writer
from tightship.graph import Graph
from tightship.graph.ir import leading_to
from tightship.graph.new_names import renamed_node


def finished(
    writer: Writer, name: str, inputs: Sequence[str], outputs: Iterable[tuple[str, Operand]]
) -> Graph:
    """Return the graph, without nodes that no output needs.

    Args:
        writer: Written nodes and values.
        name: Name of the graph.
        inputs: Names of the inputs.
        outputs: Name and value of each output. A value that a node writes is renamed; inputs,
            constants and repeated values are copied.
    """
    final: dict[str, str] = {}
    ends: list[str] = []
    for stem, operand in outputs:
        source = operand.name
        if source not in writer.makers or source in final:
            copy = writer.define(stem, operand.dtype, operand.shape)
            writer.node("Identity", (operand,), (copy,), {})
            source = copy.name
            final[source] = source
        elif stem == source:
            final[source] = source
        else:
            final[source] = writer.define(stem, operand.dtype, operand.shape).name
        ends.append(source)
    written = leading_to(ends, writer.nodes)
    read = {each for node in written for each in node.reads}
    return Graph(
        name=name,
        inputs=tuple(inputs),
        outputs=tuple(final[end] for end in ends),
        values={n: value for n, value in writer.values.items() if final.get(n, n) == n},
        nodes=tuple(renamed_node(node, final) for node in written),
        constants={n: held for n, held in writer.constants.items() if n in read},
    )
