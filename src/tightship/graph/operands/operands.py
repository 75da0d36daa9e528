"""Operands of one node, and requirements on their shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship.graph.ir import AttributeValue
from tightship.graph.layout import Dimension, Shape
from tightship.graph.recurrent_shapes import agree


class MisfitError(Exception):
    """Operands do not fit each other; the message names one and says what is valid."""


class OpenShapeError(Exception):
    """The rank of an operand that a rule depends on is unknown."""


@dataclass(frozen=True, slots=True)
class Operands:
    """Names and shapes of a node's inputs, and the node's attributes.

    Lengths that are not integers are unknown, and agree with any other.

    Attributes:
        names: Names of the inputs in order; empty if left out.
        shapes: Shapes of the inputs in order; None if left out or of unknown rank.
        attributes: Attributes of the node.
        version: Opset version that defines the operator.
        outputs: Number of the node's outputs.
    """

    names: Sequence[str]
    shapes: Sequence[Shape | None]
    attributes: Mapping[str, AttributeValue]
    version: int
    outputs: int = 1

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list attribute; None if the node does not set it."""
        value = self.attributes.get(name)
        return tuple(map(int, value)) if isinstance(value, tuple) else None

    def has(self, place: int) -> bool:
        """Whether the node has this input."""
        return place < len(self.names) and bool(self.names[place])

    def find(self, place: int) -> Shape | None:
        """Return the shape of an input; None if it is left out or of unknown rank."""
        return self.shapes[place] if place < len(self.shapes) else None

    def shape(self, place: int, least_rank: int = 0) -> Shape:
        """Return the shape of an input that the rule depends on.

        Raises:
            MisfitError: It has fewer than `least_rank` dimensions.
            OpenShapeError: Its rank is unknown.
        """
        shape = self.find(place)
        if shape is None:
            raise OpenShapeError
        if len(shape) < least_rank:
            self.refuse(place, f"at least {least_rank} dimensions are needed")
        return shape

    def axis(self, name: str, default: int, rank: int) -> int:
        """Return an attribute that is an axis, counted from the front.

        Raises:
            MisfitError: The axis is out of range.
        """
        axis = self.integer(name, default)
        if not -rank <= axis < rank:
            raise MisfitError(
                f"{name} is {axis}, but `{self.names[0]}` has the shape {text(self.shape(0))}"
            )
        return axis % rank

    def require(self, place: int, *allowed: Sequence[Dimension]) -> None:
        """Require that an input, if present, has one of these shapes.

        Raises:
            MisfitError: It has another.
        """
        found = self.find(place)
        if found is not None and not any(agree(found, shape) for shape in allowed):
            self.refuse(place, f"{' or '.join(map(text, allowed))} is needed")

    def require_rank(self, place: int, rank: int) -> None:
        """Require that an input, if present, has this rank."""
        self.require(place, (None,) * rank)

    def require_one(self, *places: int) -> None:
        """Require that inputs, if present, have one element each."""
        for place in places:
            found = self.find(place)
            if found is not None and any(
                length != 1 for length in found if isinstance(length, int)
            ):
                self.refuse(place, "one element is needed")

    def require_spread(self, place: int, whole: Sequence[Dimension]) -> None:
        """Require that an input, if present, broadcasts to a shape without widening it."""
        found = self.find(place)
        if found is None:
            return
        over = tuple(whole)[len(whole) - len(found) :] if len(found) <= len(whole) else None
        if over is None or not all(
            a == 1 or agree((a,), (b,)) for a, b in zip(found, over, strict=True)
        ):
            self.refuse(place, f"one that spreads over {text(whole)} is needed")

    def refuse(self, place: int, needed: str) -> None:
        """Raise a `MisfitError` for an input, with its requirement."""
        found = text(self.shape(place))
        raise MisfitError(f"`{self.names[place]}` has the shape {found}, where {needed}")


def text(shape: Sequence[Dimension]) -> str:
    """Format a shape for a message."""
    return "[" + ", ".join("?" if length is None else str(length) for length in shape) + "]"


def product(first: Dimension, second: Dimension) -> Dimension:
    """Multiply two lengths; None if one of them is unknown."""
    return first * second if isinstance(first, int) and isinstance(second, int) else None
