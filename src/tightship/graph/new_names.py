"""Names for what is added to a graph."""

from tightship.graph.ir import Graph


class NewNames:
    """Names that nothing of a graph has, nor of its nodes' graphs, and that are given once."""

    def __init__(self, graph: Graph) -> None:
        self._taken = _names_of(graph)
        self._given: dict[str, str] = {}

    def new(self, wanted: str) -> str:
        """`wanted`, or the first of `wanted.2`, `wanted.3`, ... that nothing is called."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}.{count}"
        self._taken.add(name)
        return name

    def of(self, wanted: str) -> str:
        """As `new`, but the same whenever it is asked for."""
        if wanted not in self._given:
            self._given[wanted] = self.new(wanted)
        return self._given[wanted]


def _names_of(graph: Graph) -> set[str]:
    found = {*graph.inputs, *graph.values, *graph.constants, *graph.known, *graph.captures}
    for node in graph.nodes:
        found.update(node.writes)
        for body in node.subgraphs:
            found |= _names_of(body)
    return found
