"""Parts that templates of one model have in common, held once."""

from collections.abc import Iterable, Mapping

from tightship.graph import AttributeValue, Constant, Derived, Fill, Graph, Inline, Mapped, Node
from tightship.graph.constant import Computed
from tightship.graph.length import is_length
from tightship.graph.symbolic import SymbolicConstant, constant_key, depends_on_lengths


def equal_nodes(nodes: Iterable[Node], held: Iterable[Node]) -> tuple[Node, ...]:
    """Return `nodes`, each replaced by the equal one of `held` where there is one.

    A node with a length in an attribute is left as it is: its expression belongs to its template.
    """
    by_name = {node.name: node for node in held}
    return tuple([_node(node, by_name.get(node.name)) for node in nodes])


def equal_constants(
    constants: Mapping[str, Constant], held: Mapping[str, Constant]
) -> dict[str, Constant]:
    """Return `constants` by name, each replaced by the equal one of `held` where there is one."""
    return {name: _constant(each, held.get(name)) for name, each in constants.items()}


def _node(node: Node, other: Node | None) -> Node:
    return other if other is not None and _are_equal(node, other) else node


def _constant(constant: Constant, other: Constant | None) -> Constant:
    return other if other is not None and _are_equal_constants(constant, other) else constant


def _are_equal(node: Node, other: Node) -> bool:
    return (
        node.operator == other.operator
        and node.inputs == other.inputs
        and node.outputs == other.outputs
        and (node.domain, node.version) == (other.domain, other.version)
        and len(node.fused) == len(other.fused)
        and node.attributes.keys() == other.attributes.keys()
        and all(map(_are_equal, node.fused, other.fused))
        and all(
            _are_equal_attributes(value, other.attributes[name])
            for name, value in node.attributes.items()
        )
    )


def _are_equal_attributes(value: AttributeValue, other: AttributeValue) -> bool:
    if value is other:
        return not _has_length(value)
    if type(value) is not type(other) or isinstance(value, Graph) or _has_length(value):
        return False
    if isinstance(value, (Computed, Fill, SymbolicConstant, Inline, Mapped)):
        assert isinstance(other, (Derived, Fill, SymbolicConstant, Inline, Mapped))
        return _are_equal_constants(value, other)
    return not _has_length(other) and value == other


def _are_equal_constants(constant: Constant, other: Constant) -> bool:
    if depends_on_lengths(constant) or depends_on_lengths(other):
        return False
    return constant is other or constant_key(constant) == constant_key(other)


def _has_length(value: AttributeValue) -> bool:
    return is_length(value) or (isinstance(value, tuple) and any(map(is_length, value)))
