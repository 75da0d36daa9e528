"""Runs a lowered model with primitives and memory obtained for each call, as frameworks do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightship._core import (
    Attributes,
    BlobLifetimeManager,
    KernelError,
    LifetimeManager,
    MemoryDesc,
    MemoryResource,
    NativeProgram,
    NativeStepwise,
    OffsetLifetimeManager,
    PrimitiveCache,
    PrimitiveDesc,
)
from tightship.engine.library import library_threads
from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    ControlWork,
    NativeWork,
    Operand,
    PrimitiveWork,
    Space,
)
from tightship.engine.run.executable import SCRATCHPAD, add_control
from tightship.engine.run.limits import Limits, end
from tightship.engine.weights.weight_store import WeightStore
from tightship.errors import InputError
from tightship.planner.schedule_plan import NO_BUFFER

Array = NDArray[np.generic]
Grouping = Literal["value", "blob", "offset"]
Group = tuple[int, int, LifetimeManager, list[int]]
Place = tuple[int, int]
Argument = tuple[int, MemoryDesc, Place]
FIRST_EXTERNAL = 2
SRC, DST = 1, 17


@dataclass(frozen=True, slots=True)
class Pattern:
    """Resources that are obtained for each call.

    Attributes:
        repacks_weights: Whether weights are packed into a primitive's layout before each of its
            calls, as by operators that own their weights and are made for the call; else once.
        grouping: Lifetime of memory for values: that of each value (`value`), or of the run, as
            regions (`blob`) or at offsets (`offset`).
    """

    repacks_weights: bool = False
    grouping: Grouping = "value"


LIBRARY_MANAGED = Pattern(repacks_weights=True)
"""Operators made for each call, which own their weights."""
PLAIN = Pattern()


class Stepwise:
    """Runner of a placement step by step; one run at a time per object.

    Primitives come from `cache`, and with them the policy that keeps scratch, values and repacked
    weights. Of the plan, only the sharing of bytes between values is used.
    """

    def __init__(
        self,
        placement: Placement,
        cache: PrimitiveCache,
        resource: MemoryResource,
        store: WeightStore,
        pattern: Pattern = PLAIN,
    ) -> None:
        """Describe every step, and pack the weights that are not packed for each call.

        Raises:
            InputError: A step runs in Python.
            OutOfMemoryError: Memory for the weights cannot be allocated.
        """
        described = _Described(placement, pattern)
        self._native = NativeStepwise(
            described.program, cache, resource, described.groups, described.scratch_slot
        )
        weights = placement.lowered.weights
        packed = [index for index in range(len(weights)) if index not in described.plain]
        copies = store.copies([weights[index] for index in packed])
        for index, copy in zip(packed, copies, strict=True):
            self._native.bind_persistent(described.first_weight + index, copy.array())
        for index, slot in described.plain.items():
            self._native.bind_persistent(
                slot, np.ascontiguousarray(weights[index].constant.array())
            )

    def run(self, external: Mapping[int, Array], limits: Limits | None = None) -> None:
        """Run every step once, with `external` as for `executor.execute`.

        Raises:
            InputError: Elements of an input are outside what an operator takes.
            OutOfMemoryError: A resource refuses; the run's memory is given back.
            StoppedError, DeadlineError: The limits ended the run between two steps.
        """
        limits = limits or Limits()
        for slot, array in external.items():
            self._native.bind_external(slot, array)
        try:
            end(self._native.run(limits.stop, limits.deadline_ns))
        except KernelError as error:
            raise InputError(str(error)) from None

    @property
    def memory_ns(self) -> int:
        """Nanoseconds of the last run to obtain and give back memory, page faults excluded."""
        return self._native.memory_ns

    @property
    def primitives_ns(self) -> int:
        """Nanoseconds of the last run to find or compile primitives."""
        return self._native.primitives_ns


class _Described:
    """Program over external slots, with the lifetime of each slot.

    Slots are those of the lowered program, then one for each buffer of its plan, for each weight,
    and for scratch and unpacked weights as they are met.
    """

    def __init__(self, placement: Placement, pattern: Pattern) -> None:
        self._lowered, self._buffers = placement.lowered, placement.schedule_plan.buffers
        self._first_buffer = len(self._lowered.slots)
        sizes = self._buffers.problem.size_bytes
        self.first_weight = self._first_buffer + len(sizes)
        self._next_slot = self.first_weight + len(self._lowered.weights)
        self.scratch_slot = self._slot()
        self.program = NativeProgram()
        self.groups: list[Group] = []
        self.plain: dict[int, int] = {}
        """Slot of the file's bytes of each weight that is packed for a call."""
        self._repacks = pattern.repacks_weights
        with library_threads(self._lowered.threads):
            positions = [self._add(index) for index in range(len(self._lowered.steps))]
        self.program.defer(self._lowered.threads)
        self._add_values(positions, pattern.grouping)

    def _slot(self) -> int:
        self._next_slot += 1
        return self._next_slot - 1

    def _place(self, operand: Operand) -> Place:
        if operand.space is Space.WEIGHTS:
            return FIRST_EXTERNAL + self.first_weight + operand.slot, 0
        if operand.space is Space.EXTERNAL:
            return FIRST_EXTERNAL + operand.slot, 0
        buffer = self._buffers.of_value[operand.slot]
        if buffer == NO_BUFFER:
            return FIRST_EXTERNAL + self.scratch_slot, 0
        offset = self._buffers.inside.get(operand.slot, 0) + operand.offset_bytes
        return FIRST_EXTERNAL + self._first_buffer + buffer, offset

    def _add(self, index: int) -> int:
        """Add a step after those that pack its weights; return its index in the program."""
        step = self._lowered.steps[index]
        work = step.work
        if isinstance(work, PrimitiveWork):
            operands = [operand for _, operand in work.arguments]
            weights = self._add_repacking(operands)
            position = self._add_primitive(
                work.desc, [(n, _desc(o), self._place(o)) for n, o in work.arguments]
            )
        elif isinstance(work, NativeWork | ControlWork):
            if isinstance(work, ControlWork):
                operands = [*work.outputs, *work.inputs]
            else:
                operands = [*work.operands]
            weights = self._add_repacking(operands)
            position = self.program.step_count
            places = [self._first_element(operand) for operand in operands]
            if step.scratch_bytes:
                scratch = self._slot()
                places.append((FIRST_EXTERNAL + scratch, 0))
                self.groups.append((position, position, _alone(step.scratch_bytes), [scratch]))
            if isinstance(work, ControlWork):
                add_control(self.program, work, places)
            else:
                self.program.add_kernel(work.kernel, places)
        else:
            raise InputError(
                f"Step `{step.name}` ({step.operator}) runs in Python; only models whose steps "
                "are all oneDNN's or the core's run step by step. Load the model with "
                "`tightship.load`, whose runs take what such steps need from pools as well."
            )
        for weight, first in weights.items():
            size = self._lowered.weights[weight].size_bytes
            self.groups.append((first, position, _alone(size), [self.first_weight + weight]))
        return position

    def _first_element(self, operand: Operand) -> Place:
        space, offset = self._place(operand)
        return space, offset + (0 if operand.desc is None else operand.desc.offset_bytes)

    def _add_primitive(self, desc: PrimitiveDesc, arguments: list[Argument]) -> int:
        if desc.scratchpad_bytes:
            place = FIRST_EXTERNAL + self.scratch_slot, 0
            arguments = [*arguments, (SCRATCHPAD, desc.operand(SCRATCHPAD), place)]
        self.program.add_primitive(desc, arguments)
        return self.program.step_count - 1

    def _add_repacking(self, operands: Iterable[Operand]) -> dict[int, int]:
        """Add steps that pack weights into another layout; return each weight's step."""
        found: dict[int, int] = {}
        read = {operand.slot for operand in operands if operand.space is Space.WEIGHTS}
        for index in sorted(read) if self._repacks else ():
            weight = self._lowered.weights[index]
            if weight.source is None or weight.desc is None or weight.source == weight.desc:
                continue
            if index not in self.plain:
                self.plain[index] = self._slot()
            found[index] = self._add_primitive(
                PrimitiveDesc.reorder(weight.source, weight.desc, Attributes()),
                [
                    (SRC, weight.source, (FIRST_EXTERNAL + self.plain[index], 0)),
                    (DST, weight.desc, (FIRST_EXTERNAL + self.first_weight + index, 0)),
                ],
            )
        return found

    def _add_values(self, positions: list[int], grouping: Grouping) -> None:
        problem = self._buffers.problem
        buffers = sorted({b for b in self._buffers.of_value if b != NO_BUFFER})
        sizes = {b: int(problem.size_bytes[b]) for b in buffers}
        if grouping == "value":
            for b in buffers:
                first, last = positions[problem.start_step[b]], positions[problem.stop_step[b] - 1]
                self.groups.append((first, last, _alone(sizes[b]), [self._first_buffer + b]))
            return
        lifetimes = BlobLifetimeManager() if grouping == "blob" else OffsetLifetimeManager()
        objects: dict[int, int] = {}
        for step in range(len(positions)):
            for b in [b for b in buffers if problem.start_step[b] == step]:
                objects[b] = lifetimes.start_lifetime()
            for b in [b for b in buffers if problem.stop_step[b] == step + 1]:
                lifetimes.end_lifetime(objects[b], sizes[b])
        slots = [self._first_buffer + b for b in objects]
        if slots:
            self.groups.append((0, self.program.step_count - 1, lifetimes, slots))


def _alone(size_bytes: int) -> LifetimeManager:
    """Make the lifetime of a single object."""
    lifetimes = OffsetLifetimeManager()
    lifetimes.end_lifetime(lifetimes.start_lifetime(), size_bytes)
    return lifetimes


def _desc(operand: Operand) -> MemoryDesc:
    assert operand.desc is not None
    return operand.desc
