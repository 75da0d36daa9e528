"""Makes unused names for additions to a graph."""

from tightship.graph.ir import Graph


class NewNames:
    """Names that are unused in a graph and its nodes' subgraphs, each given once."""

    def __init__(self, graph: Graph) -> None:
        self._taken = _names_of(graph)
        self._given: dict[str, str] = {}

    def new(self, wanted: str) -> str:
        """Return `wanted`, or the first of `wanted.2`, `wanted.3`, ... that is unused."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}.{count}"
        self._taken.add(name)
        return name

    def of(self, wanted: str) -> str:
        """Return the same new name each time that `wanted` is asked for."""
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
