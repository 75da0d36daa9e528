"""A node as its rule sees it: shapes of inputs, whose dimensions may be symbolic lengths."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightship.graph import Constant, Node

Shape = tuple[int, ...]
Elements = tuple[int, ...]


class NoRuleError(Exception):
    """Nothing is known of this operator, or of this form of it."""


@dataclass(frozen=True, slots=True)
class ShapeContext:
    """A node, the shapes of its inputs, and those whose elements are known, as flat tuples."""

    node: Node
    shapes: tuple[Shape | None, ...]
    elements: tuple[Elements | None, ...]
    constants: tuple[Constant | None, ...] = ()
    """Inputs that are known, where their elements are no integers."""

    def shape(self, index: int = 0) -> Shape:
        """Shape of an input that must be there."""
        found = self.shapes[index] if index < len(self.shapes) else None
        if found is None:
            raise NoRuleError
        return found

    def integer(self, name: str, default: int) -> int:
        """An attribute that is one integer."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int):
            raise NoRuleError
        return value

    def integers(self, name: str, index: int = -1) -> tuple[int, ...] | None:
        """A list given as an attribute or, by newer opsets, as an input; None if absent."""
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
    """The shape of an elementwise operation."""
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
    """Number of elements."""
    count = 1
    for length in shape:
        count = count * length
    return count
