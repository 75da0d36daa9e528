"""What bodies that are not written out cannot do in training."""

from collections.abc import Iterator

from tightship.errors import GraphError
from tightship.graph import Graph, Node


def refuse_training_forms(graph: Graph, dropout: float | None) -> None:
    """Refuse bodies with nodes that training changes, which it does in the outermost graph alone.

    Args:
        graph: A graph whose known control flow is written out.
        dropout: What dropouts drop, where one share is given for all.

    Raises:
        GraphError: A dropout is on, or a batch normalization is there.
    """
    for owner in graph.nodes:
        for node, body in _within(owner):
            where = (
                f"{node.operator} `{node.name}` is in a body of `{owner.name}` ({owner.operator}), "
                "which is no counted loop that is short enough to be written out, and"
            )
            if node.operator == "Dropout" and dropout != 0 and _is_on(node, body, graph):
                raise GraphError(
                    f"{where} drops nothing there: train with `dropout=0`, or have it before or "
                    "behind."
                )
            if node.operator == "BatchNormalization":
                raise GraphError(
                    f"{where} keeps no running statistics there: put it before or behind, or write "
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
