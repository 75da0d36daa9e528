"""What a frontend has written, as a graph."""

from collections.abc import Iterable, Sequence

from tightship.frontend.writer import Operand, Writer
from tightship.graph import Graph
from tightship.graph.ir import leading_to
from tightship.graph.renamed import renamed_node


def finished(
    writer: Writer, name: str, inputs: Sequence[str], outputs: Iterable[tuple[str, Operand]]
) -> Graph:
    """The graph, without what leads to no output.

    Args:
        writer: What has been written.
        name: Of the graph.
        inputs: Values that are given.
        outputs: What each is called, and what it is. A value that a node writes takes the name;
            of an input, a constant or the same value once more there is a copy.
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
