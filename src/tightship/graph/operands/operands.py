"""The operands of one node, and what a rule may require of their shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship.graph.ir import AttributeValue
from tightship.graph.layout import Dimension, Shape
from tightship.graph.recurrent_shapes import agree


class MisfitError(Exception):
    """Operands do not fit each other; the text names the one and says what is valid."""


class OpenShapeError(Exception):
    """The rank of an operand that a rule depends on is not known."""


@dataclass(frozen=True, slots=True)
class Operands:
    """Names and shapes of a node's inputs, and what else gives them a meaning.

    Lengths that are not integers are unknown, and agree with any other.

    Attributes:
        names: Of the inputs, positional; empty where absent.
        shapes: Of the inputs, positional; None where absent or where the rank is not known.
        attributes: Of the node.
        version: Opset version that the operator has its meaning from.
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
        """Return a list attribute; None where the node does not set it."""
        value = self.attributes.get(name)
        return tuple(map(int, value)) if isinstance(value, tuple) else None

    def has(self, place: int) -> bool:
        """Return whether the node gives this input."""
        return place < len(self.names) and bool(self.names[place])

    def find(self, place: int) -> Shape | None:
        """Return the shape of an input; None where it is absent or of unknown rank."""
        return self.shapes[place] if place < len(self.shapes) else None

    def shape(self, place: int, least_rank: int = 0) -> Shape:
        """Return the shape of an input that the rule depends on.

        Raises:
            MisfitError: It has fewer than `least_rank` dimensions.
            OpenShapeError: Its rank is not known.
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
            MisfitError: There is no such axis.
        """
        axis = self.integer(name, default)
        if not -rank <= axis < rank:
            raise MisfitError(
                f"{name} is {axis}, but `{self.names[0]}` has the shape {text(self.shape(0))}"
            )
        return axis % rank

    def require(self, place: int, *allowed: Sequence[Dimension]) -> None:
        """Require that an input, where it is there, has one of these shapes.

        Raises:
            MisfitError: It has another.
        """
        found = self.find(place)
        if found is not None and not any(agree(found, shape) for shape in allowed):
            self.refuse(place, f"{' or '.join(map(text, allowed))} is needed")

    def require_rank(self, place: int, rank: int) -> None:
        """Require that an input, where it is there, has so many dimensions."""
        self.require(place, (None,) * rank)

    def require_one(self, *places: int) -> None:
        """Require that inputs, where they are there, have one element each."""
        for place in places:
            found = self.find(place)
            if found is not None and any(
                length != 1 for length in found if isinstance(length, int)
            ):
                self.refuse(place, "one element is needed")

    def require_spread(self, place: int, whole: Sequence[Dimension]) -> None:
        """Require that an input, where it is there, spreads over a shape without widening it."""
        found = self.find(place)
        if found is None:
            return
        over = tuple(whole)[len(whole) - len(found) :] if len(found) <= len(whole) else None
        if over is None or not all(
            a == 1 or agree((a,), (b,)) for a, b in zip(found, over, strict=True)
        ):
            self.refuse(place, f"one that spreads over {text(whole)} is needed")

    def refuse(self, place: int, needed: str) -> None:
        """Raise a `MisfitError` for an input, with what is needed of it."""
        found = text(self.shape(place))
        raise MisfitError(f"`{self.names[place]}` has the shape {found}, where {needed}")


def text(shape: Sequence[Dimension]) -> str:
    """Return a shape as messages have it."""
    return "[" + ", ".join("?" if length is None else str(length) for length in shape) + "]"


def product(first: Dimension, second: Dimension) -> Dimension:
    """Return the product of two lengths; None where one of them is not known."""
    return first * second if isinstance(first, int) and isinstance(second, int) else None
