"""Checks bodies of control flow that stay unexpanded, and bounds the memory that they allocate."""

from collections.abc import Iterable, Iterator

from tightship.engine.program.program import Lowered, ReferenceWork
from tightship.errors import GraphError
from tightship.graph import Graph, Node


def refuse_training_forms(graph: Graph, dropout: float | None) -> None:
    """Refuse bodies with nodes that training changes, because it changes only the outermost graph.

    Args:
        graph: A graph whose known control flow is expanded.
        dropout: Share of elements that all dropouts drop; None if each has a ratio of its own.

    Raises:
        GraphError: A body has an active dropout or a batch normalization.
    """
    for owner in graph.nodes:
        for node, body in _within(owner):
            where = (
                f"{node.operator} `{node.name}` is in a body of `{owner.name}` ({owner.operator}), "
                "which is not a counted loop that is short enough to be expanded, and"
            )
            if node.operator == "Dropout" and dropout != 0 and _is_on(node, body, graph):
                raise GraphError(
                    f"{where} drops nothing there: train with `dropout=0`, or move the dropout out "
                    "of the body."
                )
            if node.operator == "BatchNormalization":
                raise GraphError(
                    f"{where} keeps no running statistics there: move it out of the body, or write "
                    "it as the product and the sum that it is in inference."
                )


def _within(node: Node) -> Iterator[tuple[Node, Graph]]:
    for body in node.subgraphs:
        for inner in body.nodes:
            if not inner.domain:
                yield inner, body
            yield from _within(inner)


def _is_on(node: Node, body: Graph, graph: Graph) -> bool:
    name = node.inputs[2] if len(node.inputs) > 2 else ""
    mode = (body.constant(name) or graph.constant(name)) if name else None
    return mode is None or bool(mode.array().any())


def allocated_bytes(graph: Graph, lowered: Lowered) -> int:
    """Bound the bytes of known size that a node with bodies allocates while it runs.

    Bodies that the native core runs allocate nothing. Counted are the results of the bodies' nodes
    while they are live, and the outputs that a loop stacks, twice: once iteration by iteration,
    once as a whole.
    """
    allocating = {step.name for step in lowered.steps if isinstance(step.work, ReferenceWork)}
    nodes = [node for node in graph.nodes if node.subgraphs and node.name in allocating]
    return max((_run_bytes(graph, node) for node in nodes), default=0)


def _run_bytes(graph: Graph, node: Node) -> int:
    most = max(map(_body_bytes, node.subgraphs))
    if node.operator not in ("Loop", "Scan"):
        return most
    return most + 2 * _bytes_of(graph, node.outputs)


def _body_bytes(body: Graph) -> int:
    """Return the largest live bytes of the values that the nodes of a body write."""
    last = {name: index for index, node in enumerate(body.nodes) for name in node.reads}
    last.update(dict.fromkeys(body.outputs, len(body.nodes)))
    live = most = 0
    written: set[str] = set()
    for index, node in enumerate(body.nodes):
        written.update(node.writes)
        live += _bytes_of(body, node.writes)
        most = max(most, live + (_run_bytes(body, node) if node.subgraphs else 0))
        names = written.intersection((*node.reads, *node.writes))
        live -= _bytes_of(body, (name for name in names if last.get(name, index) <= index))
    return most


def _bytes_of(graph: Graph, names: Iterable[str]) -> int:
    values = (graph.value(name) for name in names if name)
    return sum(value.size_bytes for value in values if value.is_static)
