"""Arrays of a session, bound to the slots of programs, so that a step only sets its numbers."""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tightship._core import SessionState, TokenSteps
from tightship.engine.program.program import Lowered, Operand, Space
from tightship.engine.run.arena import FixedArrays
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.engine.run.output_buffer_pool import LARGE_BYTES, OutputBufferPool
from tightship.engine.run.overwriting import SlotUses
from tightship.engine.state.decoder import Decoder
from tightship.model import feeds
from tightship.model.feeds import Array

PAST_LENGTH = "past_length"
NO_INPUTS: Mapping[str, Array] = MappingProxyType({})


def cache_slots(lowered: Lowered, decoder: Decoder) -> tuple[dict[int, str], dict[str, int], bool]:
    """Find where a program has caches.

    Returns:
        Names of caches by the slots of inputs, and of outputs that are written over them; slots of
        the other outputs by the names of caches; whether all caches are written by kernels that
        append.
    """
    caches: dict[int, str] = {}
    copied: dict[str, int] = {}
    uses = SlotUses.of(lowered)
    for cache in decoder.caches:
        past, present = cache.pair.past, cache.pair.present
        caches[lowered.inputs[past].slot] = past
        target = lowered.outputs[present].slot
        if uses.why_unsafe(present, past):
            copied[past] = target
        else:
            caches[target] = past
    written = [writers for slot in caches if (writers := uses.writers.get((Space.EXTERNAL, slot)))]
    kernels = {lowered.steps[step].implementation for steps in written for step in steps}
    return caches, copied, not copied and kernels <= {"append"}


@dataclass(frozen=True, slots=True, weakref_slot=True)
class StepPlaces:
    """Slots of a program's caches and logits.

    Attributes:
        executable: The program.
        caches: Names of caches by the slots of inputs, and of outputs that are written over them.
        copied: Slots of the other outputs by the names of caches, which get their rows afterwards.
        appends: Whether all caches are written by kernels that append.
        logits: Slot of the logits.
        tokens: Name of the input of tokens.
        inputs: Inputs but caches.
        results: Outputs but caches.
    """

    executable: Executable
    caches: Mapping[int, str]
    copied: Mapping[str, int]
    appends: bool
    logits: int
    tokens: str
    inputs: Mapping[str, Operand]
    results: tuple["Result", ...]

    @staticmethod
    def of(executable: Executable, decoder: Decoder) -> "StepPlaces":
        """Find the slots of a program, and which outputs may be written over caches."""
        lowered = executable.placement.lowered
        caches, copied, appends = cache_slots(lowered, decoder)
        logits = lowered.outputs[decoder.logits].slot
        besides = feeds.Besides.of(lowered, caches)
        results = tuple(
            Result(name, o.slot, o.shape, o.dtype.numpy, o.size_bytes >= LARGE_BYTES)
            for name, o in besides.outputs.items()
        )
        return StepPlaces(
            executable, caches, copied, appends, logits, decoder.tokens, besides.inputs, results
        )

    def token_steps(self, kept: OutputBufferPool | None) -> TokenSteps | None:
        """Return steps of one token by the program; None if such a step needs Python.

        Args:
            kept: Provides large results, as for `new_results`.
        """
        segment, *others = self.executable.segments
        if not isinstance(segment, NativeSegment) or others or self.copied:
            return None
        if [each.slot for each in self.results] != [self.logits]:
            return None
        (result,) = self.results
        make = partial(np.empty, result.shape, result.dtype)
        if kept is not None and result.is_large:
            make = partial(kept.array, result.name, result.shape, result.dtype)
        return TokenSteps(segment.last, self.logits, make)

    def new_results(self, kept: OutputBufferPool | None) -> dict[int, Array]:
        """Make arrays for outputs but caches.

        Args:
            kept: Provides large ones; None allocates them.
        """
        return {
            each.slot: np.empty(each.shape, each.dtype)
            if kept is None or not each.is_large
            else kept.array(each.name, each.shape, each.dtype)
            for each in self.results
        }


class Result(NamedTuple):
    """Output of which each step makes an array."""

    name: str
    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_large: bool


class BoundStep:
    """All arrays of a program but its results, which a step does not bind again.

    Attributes:
        fixed: Arrays by slot.
        objects: Inputs outside the plan by name.
    """

    __slots__ = ("_past", "_places", "_tokens", "fixed", "objects")

    def __init__(
        self, places: StepPlaces, caches: Mapping[str, Array], inputs: Mapping[str, Array]
    ) -> None:
        """Bind the arrays of a program.

        Args:
            places: Slots of the program.
            caches: Caches by the names of their inputs.
            inputs: Further inputs, the same at each step.

        Raises:
            InputError: An input is missing, or its type or shape does not fit.
        """
        operand = places.inputs[places.tokens]
        self._tokens = np.zeros(operand.shape, operand.dtype.numpy)
        self._past = np.zeros(1, np.int64)
        given = {**inputs, places.tokens: self._tokens, PAST_LENGTH: self._past}
        lowered = places.executable.placement.lowered
        bound = feeds.bind_besides(feeds.Besides(lowered, places.inputs, {}), given)
        self.objects: Mapping[str, Any] = bound.objects
        arrays = {slot: caches[name] for slot, name in places.caches.items()}
        self.fixed = FixedArrays({**arrays, **bound.external})
        self._places = weakref.ref(places)

    def make_ready(self, state: SessionState, ready: int) -> None:
        """Let steps of one token use the arrays until the session's next other use.

        Args:
            state: State of the session whose arrays these are.
            ready: Tokens up to which the rows of the caches may be written.
        """
        is_wide = self._tokens.dtype == np.int64
        state.make_ready(ready, self.fixed.operands, self._tokens, self._past, is_wide)

    @property
    def takes_one_number(self) -> bool:
        """Whether a step's only numbers are those of a token and of the tokens before it."""
        is_number = self._tokens.dtype in (np.int64, np.int32)
        return is_number and self._tokens.shape == (1, 1) and not self.objects

    def is_of(self, places: StepPlaces) -> bool:
        """Whether the arrays are bound to these slots."""
        return self._places() is places

    def set(self, tokens: Array, past: int) -> None:
        """Set what a step differs in: its tokens, and the number of tokens before them."""
        self._tokens[...] = tokens
        self._past[0] = past


class BoundCaches:
    """Caches that programs run on, with what each has bound of them; used by one run at a time.

    Attributes:
        arrays: Caches by the names of their inputs; they stay where they are.
    """

    __slots__ = ("_inputs", "_steps", "arrays")

    def __init__(
        self, arrays: Mapping[str, Array], inputs: Mapping[str, Array] = NO_INPUTS
    ) -> None:
        """Bind nothing yet.

        Args:
            arrays: The caches.
            inputs: Further inputs, the same at each step.
        """
        self.arrays, self._inputs = arrays, inputs
        self._steps: dict[int, BoundStep] = {}

    def known(self, size: int) -> BoundStep | None:
        """Return what a run has bound of the program for a number of new tokens."""
        return self._steps.get(size)

    def step(self, size: int, places: StepPlaces) -> BoundStep:
        """Return what is bound of the program for a number of new tokens."""
        known = self._steps.get(size)
        if known is None or not known.is_of(places):
            known = self._steps[size] = BoundStep(places, self.arrays, self._inputs)
        return known
