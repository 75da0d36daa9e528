"""Declaration of what an operator's translation consumes; anything else is refused by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tightship.frontend.onnx.contrib.pattern import Pattern

Value = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | None
"""Value of an attribute; None if the operator's schema has no default."""
REQUIRED: Final = "required"
"""Stands for a default; a node without the attribute is refused."""
WITHOUT = "export the model without it"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Input or output of an operator."""

    name: str
    is_optional: bool
    is_refused: bool
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class Translation:
    """Translation of an operator, and everything it consumes.

    Inputs and outputs are names in order, separated by spaces: `name?` may be absent, `!name` is
    refused, and `*name` stands for one or more.

    Attributes:
        spell: Writes the nodes.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        attributes: Attributes that are read, and their defaults.
        only: Attributes that are not read, and the values that are accepted.
        idle: Attributes that change no result here, and why.
    """

    spell: "Callable[[Pattern], None]"
    inputs: str
    outputs: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    only: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)


def parameters(text: str) -> tuple[Parameter, ...]:
    """Parse the inputs or outputs of a translation."""
    return tuple(
        Parameter(
            word.strip("!*?"), word.endswith("?") or word[0] == "!", word[0] == "!", word[0] == "*"
        )
        for word in text.split()
    )


def parameter_at(text: str, place: int) -> Parameter | None:
    """Return the input or output at a position; None after the last one."""
    known = parameters(text)
    last = known[-1]
    return known[place] if place < len(known) else last if last.is_variadic else None


def refused_attribute(translation: Translation, name: str, value: Value) -> tuple[str, str] | None:
    """Return what is wrong with an attribute of a node and the remedy; None if it is consumed."""
    if name in translation.attributes or name in translation.idle:
        return None
    allowed = translation.only.get(name)
    if allowed is None:
        return f"the attribute `{name}`", WITHOUT
    few = " and ".join(map(str, allowed))
    return None if value in allowed else (f"`{name}` = {value}", f"only {few} is; {WITHOUT}")


def refused_operand(text: str, kind: str, names: Sequence[str]) -> tuple[str, str] | None:
    """Return what is wrong with the inputs or outputs of a node and the remedy; None if nothing."""
    for place, name in enumerate(names):
        parameter = parameter_at(text, place)
        if name and parameter is None:
            return f"an {kind} at position {place}", WITHOUT
        if name and parameter is not None and parameter.is_refused:
            return f"the {kind} `{parameter.name}`", WITHOUT
    return None


def missing_input(text: str, names: Sequence[str]) -> str | None:
    """Return the first required input that a node lacks."""
    for place, parameter in enumerate(parameters(text)):
        if not parameter.is_optional and not any(names[place : place + 1]):
            return parameter.name
    return None
