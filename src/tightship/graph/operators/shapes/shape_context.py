"""Context of a symbolic shape rule: a node and the shapes of its inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightship.graph.constant import Constant
from tightship.graph.ir import Node

Shape = tuple[int, ...]
Elements = tuple[int, ...]


class NoRuleError(Exception):
    """Operator, or form of it, that has no symbolic shape rule."""


@dataclass(frozen=True, slots=True)
class ShapeContext:
    """Node with the shapes of its inputs, and the flat elements of inputs that are known."""

    node: Node
    shapes: tuple[Shape | None, ...]
    elements: tuple[Elements | None, ...]
    constants: tuple[Constant | None, ...] = ()
    """Known inputs whose elements are not integers."""

    def shape(self, index: int = 0) -> Shape:
        """Return the shape of an input that must be present."""
        found = self.shapes[index] if index < len(self.shapes) else None
        if found is None:
            raise NoRuleError
        return found

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int):
            raise NoRuleError
        return value

    def integers(self, name: str, index: int = -1) -> tuple[int, ...] | None:
        """Return a list given as an attribute or, in newer opsets, as an input; None if absent."""
        value = self.node.attributes.get(name)
        if isinstance(value, tuple):
            return tuple(element for element in value if isinstance(element, int))
        if index < 0 or index >= len(self.node.inputs) or not self.node.inputs[index]:
            return None
        found = self.elements[index]
        if found is None:
            raise NoRuleError
        return found


Rule = Callable[[ShapeContext], list[Shape]]


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape of an elementwise operation."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_common(lengths) for lengths in zip(*padded, strict=True))


def _common(lengths: Sequence[int]) -> int:
    found = 1
    for length in lengths:
        if found == 1:
            found = length
        elif length not in (1, found):
            raise NoRuleError
    return found


def product(shape: Sequence[int]) -> int:
    """Multiply the lengths of a shape."""
    count = 1
    for length in shape:
        count = count * length
    return count
