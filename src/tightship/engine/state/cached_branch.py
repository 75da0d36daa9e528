"""Decoders of which one file has a branch for the first step and one for those with caches.

Optimum merges them: an input says which branch an If takes. A session always takes the one with
caches, which are empty at first.
"""

from dataclasses import replace

from tightship.engine.state.pairs import FLAG
from tightship.errors import GraphError
from tightship.graph import Graph, Node


def cached_branch(graph: Graph) -> Graph:
    """Return a graph of which the branch with caches is a part, without the input `FLAG`.

    Raises:
        GraphError: Names of the branch are taken, or another node reads the input.
    """
    nodes: list[Node] = []
    values, constants, known = dict(graph.values), dict(graph.constants), dict(graph.known)
    for node in graph.nodes:
        if node.operator != "If" or node.domain or node.inputs[0] != FLAG:
            nodes.append(node)
            continue
        branch = node.attributes["then_branch"]
        assert isinstance(branch, Graph)
        _check_names(graph, node, branch)
        values.update({name: branch.value(name) for name in branch.values})
        constants.update(branch.constants)
        known.update(branch.known)
        nodes.extend(branch.nodes)
        for inner, outer in zip(branch.outputs, node.outputs, strict=False):
            if outer and inner != outer:
                values[outer] = replace(branch.value(inner), name=outer)
                nodes.append(Node(f"{outer}/Identity", "Identity", (inner,), (outer,), version=24))
    if any(FLAG in node.reads for node in nodes):
        raise GraphError(f"The input `{FLAG}` decides more than a branch with caches.")
    inputs = tuple(name for name in graph.inputs if name != FLAG)
    return replace(
        graph, inputs=inputs, nodes=tuple(nodes), values=values, constants=constants, known=known
    )


def _check_names(graph: Graph, node: Node, branch: Graph) -> None:
    """Check that a branch defines no name that the graph around it has for another value."""
    mine = {name for each in branch.nodes for name in each.writes} | set(branch.constants)
    own = dict(zip(node.outputs, branch.outputs, strict=False))
    taken = {name for each in graph.nodes for name in each.writes} | set(graph.constants)
    odd = [name for name in sorted(mine & taken) if own.get(name) != name]
    if odd:
        raise GraphError(f"Node `{node.name}` (If) has a branch that defines `{odd[0]}` again.")
