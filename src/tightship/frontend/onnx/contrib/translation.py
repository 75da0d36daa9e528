"""What the translation of an operator consumes of a node; anything else is refused by its name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tightship.frontend.onnx.contrib.spelling import Spelling

Value = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | None
"""Of an attribute; None where the operator's schema gives no default."""
REQUIRED: Final = "required"
"""In place of a default: a node without the attribute is refused."""
WITHOUT = "export the model without it"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input or output of an operator."""

    name: str
    is_optional: bool
    is_refused: bool
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class Translation:
    """A translation, and all that it consumes.

    Inputs and outputs are names in order, apart by spaces: `name?` may be absent, `!name` is
    refused, and `*name` stands for any number, at least one.

    Attributes:
        spell: Writes the nodes.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        attributes: What is read, and its value where a node does not have it.
        only: What is not read, and the values that need not be.
        idle: What is not read because it changes no result here, and why it does not.
    """

    spell: "Callable[[Spelling], None]"
    inputs: str
    outputs: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    only: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)


def parameters(text: str) -> tuple[Parameter, ...]:
    """The inputs or outputs of a translation."""
    return tuple(
        Parameter(
            word.strip("!*?"), word.endswith("?") or word[0] == "!", word[0] == "!", word[0] == "*"
        )
        for word in text.split()
    )


def parameter_at(text: str, place: int) -> Parameter | None:
    """The input or output at a place; None behind the last one."""
    known = parameters(text)
    last = known[-1]
    return known[place] if place < len(known) else last if last.is_variadic else None


def refused_attribute(translation: Translation, name: str, value: Value) -> tuple[str, str] | None:
    """What is wrong with an attribute of a node, and what to do; None where it is consumed."""
    if name in translation.attributes or name in translation.idle:
        return None
    allowed = translation.only.get(name)
    if allowed is None:
        return f"the attribute `{name}`", WITHOUT
    few = " and ".join(map(str, allowed))
    return None if value in allowed else (f"`{name}` = {value}", f"only {few} is; {WITHOUT}")


def refused_operand(text: str, kind: str, names: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong with the inputs or outputs of a node, and what to do; None where nothing is."""
    for place, name in enumerate(names):
        parameter = parameter_at(text, place)
        if name and parameter is None:
            return f"an {kind} at place {place}", WITHOUT
        if name and parameter is not None and parameter.is_refused:
            return f"the {kind} `{parameter.name}`", WITHOUT
    return None


def missing_input(text: str, names: Sequence[str]) -> str | None:
    """The first input that a node must have and lacks."""
    for place, parameter in enumerate(parameters(text)):
        if not parameter.is_optional and not any(names[place : place + 1]):
            return parameter.name
    return None
