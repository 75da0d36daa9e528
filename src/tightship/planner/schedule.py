"""Defines a schedule: the steps of a program in order, with the values that they read and write."""

import enum
import operator
from dataclasses import dataclass
from typing import NoReturn

from tightship.brief import brief
from tightship.errors import InputTypeError, PlanError
from tightship.public_calls import public_methods


class AliasKind(enum.Enum):
    """Relation between an output and an input that share, or may share, a buffer."""

    VIEW = "view"
    """The output is the input's bytes; the input may live on."""
    TIED = "tied"
    """The output is written over the input, always; the input dies at this step."""
    IN_PLACE = "in_place"
    """The output may be written over the input if no later step reads the input's bytes."""
    PART = "part"
    """The input may be written into its place in the output; the step then does not copy it."""


SUM_BYTES_MAX = 2**62
"""Limit of the sum of all values and scratch, so that live bytes fit 64 bits."""

BINDING = (AliasKind.VIEW, AliasKind.TIED)
"""Kinds of aliases that are always taken."""


@brief
@dataclass(frozen=True, slots=True)
class Alias:
    """An output that shares, or may share, the buffer of an input of the same step.

    TIED and IN_PLACE promise that the step may write `output` over `input`, at whichever positions
    the step has `input` as an operand. They promise nothing about other values in the same buffer.
    A PART promises that the output contains the input unchanged, from `offset_bytes` on, as with an
    operand of a concatenation.
    """

    output: int
    input: int
    kind: AliasKind
    offset_bytes: int = 0


@brief
@dataclass(frozen=True, slots=True)
class ScheduledValue:
    """A tensor as the planner sees it.

    Attributes:
        name: Name for messages and pictures.
        size_bytes: Size in bytes.
        alignment: Alignment in bytes, a power of two; 64 by default.
        external: Whether the value (an input, an output, a weight) lies outside the arena. It then
            takes no bytes of the arena, and no step writes over it in place.
        donated: Whether the owner of an external value gives it up, so that steps may write over it
            after its last use.

    Raises:
        InputTypeError: Size or alignment is not a whole number.
    """

    name: str
    size_bytes: int
    alignment: int = 64
    external: bool = False
    donated: bool = False

    def __post_init__(self) -> None:
        _check_bytes(self.name, "size_bytes", self.size_bytes)
        _check_bytes(self.name, "alignment", self.alignment)


@brief
@dataclass(frozen=True, slots=True)
class Step:
    """One operation: the values it reads and writes, by index, and its scratch in bytes."""

    name: str
    operator: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch_bytes: int = 0
    aliases: tuple[Alias, ...] = ()


@brief
@public_methods
@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in the order in which they run, over values numbered from 0.

    A schedule is checked when it is made: indices are in range; a value is written at most once
    and, unless it is external, not read before; an output has either one VIEW or TIED alias or any
    number of others. Values in `outputs` are read after the last step.

    Raises:
        PlanError: One of these conditions does not hold, or a size or alignment is invalid.
    """

    values: tuple[ScheduledValue, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for value in self.values:
            _check_value(value)
        sizes = sum([value.size_bytes for value in self.values])
        sizes += sum([step.scratch_bytes for step in self.steps])
        if sizes >= SUM_BYTES_MAX:
            raise PlanError(
                f"The values and scratch of the schedule add up to {sizes} bytes; they must stay "
                f"below {SUM_BYTES_MAX}."
            )
        written: set[int] = set()
        readable = {index for index, value in enumerate(self.values) if value.external}
        for step in self.steps:
            if not readable.issuperset(step.reads):
                self._refuse_reads(step, readable)
            self._check_writes(step, written)
            written.update(step.writes)
            readable.update(step.writes)
        self._check_indices(self.outputs, "The schedule keeps")
        for index in self.outputs:
            if index not in readable:
                raise PlanError(
                    f"No step writes output `{self.values[index].name}`; an output that is not "
                    "external must be written."
                )

    def _refuse_reads(self, step: Step, readable: set[int]) -> NoReturn:
        self._check_indices(step.reads, f"Step `{step.name}` reads")
        index = next(index for index in step.reads if index not in readable)
        raise PlanError(
            f"Step `{step.name}` reads `{self.values[index].name}`, which no earlier step "
            "writes. Order the steps, or make the value external."
        )

    def _check_writes(self, step: Step, written: set[int]) -> None:
        self._check_indices(step.writes, f"Step `{step.name}` writes")
        if step.scratch_bytes < 0:
            raise PlanError(
                f"Step `{step.name}` has scratch_bytes={step.scratch_bytes}; it must be >= 0."
            )
        for position, index in enumerate(step.writes):
            if index in written or index in step.writes[:position]:
                raise PlanError(
                    f"Step `{step.name}` writes `{self.values[index].name}` a second time."
                )
        if step.aliases:
            self._check_aliases(step)

    def _check_aliases(self, step: Step) -> None:
        for alias in step.aliases:
            if alias.output not in step.writes or alias.input not in step.reads:
                raise PlanError(
                    f"Step `{step.name}` has an alias of output {alias.output} to input "
                    f"{alias.input}; it must write the one and read the other."
                )
        if len(step.aliases) == 1 and step.aliases[0].kind is not AliasKind.PART:
            return
        bound = [alias.output for alias in step.aliases if alias.kind in BINDING]
        for index in bound:
            if sum(alias.output == index for alias in step.aliases) > 1:
                raise PlanError(
                    f"Step `{step.name}` ties `{self.values[index].name}` to one input and "
                    "aliases it to another; an output has one buffer."
                )

        if parts := [alias for alias in step.aliases if alias.kind is AliasKind.PART]:
            self._check_parts(step, parts)

    def _check_parts(self, step: Step, parts: list[Alias]) -> None:
        """Check that parts lie inside their output and do not overlap."""
        ends: dict[int, int] = {}
        for part in sorted(parts, key=lambda part: (part.output, part.offset_bytes)):
            end = part.offset_bytes + self.values[part.input].size_bytes
            before = ends.get(part.output, 0)
            if not before <= part.offset_bytes <= end <= self.values[part.output].size_bytes:
                raise PlanError(
                    f"Step `{step.name}` has `{self.values[part.input].name}` as bytes "
                    f"[{part.offset_bytes}, {end}) of `{self.values[part.output].name}`; parts "
                    "must lie inside their output and apart from each other."
                )
            ends[part.output] = end

    def _check_indices(self, indices: tuple[int, ...], who: str) -> None:
        for index in indices:
            if not 0 <= index < len(self.values):
                raise PlanError(f"{who} value {index}; there are {len(self.values)} values.")


def _check_bytes(name: str, field: str, amount: int) -> None:
    try:
        operator.index(amount)
    except TypeError:
        raise InputTypeError(
            f"Value `{name}` has {field}={amount!r}, a `{type(amount).__name__}`; give a whole "
            "number of bytes, an `int`."
        ) from None


def _check_value(value: ScheduledValue) -> None:
    if value.size_bytes < 0:
        raise PlanError(f"Value `{value.name}` has size_bytes={value.size_bytes}; it must be >= 0.")
    if value.alignment < 1 or value.alignment & (value.alignment - 1):
        raise PlanError(
            f"Value `{value.name}` has alignment={value.alignment}; it must be a power of two."
        )
    if value.donated and not value.external:
        raise PlanError(
            f"Value `{value.name}` is donated, but not external; only external values can be "
            "donated, because the plan owns the arena already."
        )
