"""Checks that stored bodies of control flow touch only bytes that their step has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import (
    ABSENT,
    Body,
    ControlWork,
    Iterations,
    LoweredStep,
    Slices,
)
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.stored.bounds import check_bounds
from tightship.engine.stored.fields import MalformedError

NUMBER_BYTES, TRUTH_BYTES = 8, 1
NUMBERS_BYTES = NUMBER_BYTES + 2 * TRUTH_BYTES


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Bytes that a slot of a body is bound to, and whether the body may write them."""

    slot: int
    size_bytes: int
    is_written: bool


def check_control(step: LoweredStep, work: ControlWork, threads: int) -> None:
    """Refuse a step of control flow that would touch a byte outside its operands or its scratch.

    Args:
        step: The step, whose operands are within their slots.
        work: What it does.
        threads: Threads of each kernel.

    Raises:
        MalformedError: It would, or lacks something.
    """
    run = work.iterations
    checks = _Checks(step.name, work, step.scratch_bytes)
    checks.require(len(work.bodies) in (1, 2) and (len(work.bodies) == 1 or run.condition >= 0))
    checks.require(run.condition == ABSENT or checks.has(run.condition, TRUTH_BYTES))
    checks.require(run.count == ABSENT or checks.has(run.count, NUMBER_BYTES))
    checks.require(not run.obeys or run.next_slot != ABSENT)
    own = list(_of_iterations(checks, run)) if len(work.bodies) == 1 else []
    for body in work.bodies:
        checks.require(body.lowered.threads == threads)
        _check_body(checks, body, [*own, *_bound(checks, body)])


@dataclass(frozen=True, slots=True)
class _Checks:
    """Operands of a step by number, and its scratch."""

    name: str
    work: ControlWork
    scratch_bytes: int

    def require(self, condition: bool) -> None:  # noqa: FBT001
        """Refuse the step unless a condition holds.

        Raises:
            MalformedError: It does not.
        """
        if not condition:
            raise MalformedError(f"step `{self.name:.60}` has bodies that do not fit it")

    def has(self, operand: int, size_bytes: int) -> bool:
        """Whether there is an operand of at least so many bytes."""
        operands = (*self.work.outputs, *self.work.inputs)
        return 0 <= operand < len(operands) and 0 <= size_bytes <= operands[operand].size_bytes

    def is_output(self, operand: int) -> bool:
        """Whether an operand may be written."""
        return 0 <= operand < len(self.work.outputs)

    def is_scratch(self, offset: int, size_bytes: int) -> bool:
        """Whether bytes are in the scratch, behind the arena of every body."""
        arena = max(body.plan.plan.peak_bytes for body in self.work.bodies)
        return arena <= offset and 0 <= size_bytes <= self.scratch_bytes - offset


def _check_body(checks: _Checks, body: Body, bound: Sequence[_Bytes]) -> None:
    lowered = body.lowered
    checks.require(body.plan.plan.peak_bytes <= checks.scratch_bytes)
    rooms = {each.slot: each for each in bound}
    checks.require(len(rooms) == len(bound))
    for index, slot in enumerate(lowered.slots):
        if slot.external:
            checks.require(index in rooms and slot.size_bytes <= rooms[index].size_bytes)
    written = {each.slot for each in bound if each.is_written}
    check_bounds(Placement(lowered, body.plan, (), 0), written)


def _bound(checks: _Checks, body: Body) -> Iterator[_Bytes]:
    for slot, operand in body.bound:
        checks.require(0 <= slot < len(body.lowered.slots) and body.lowered.slots[slot].external)
        size = body.lowered.slots[slot].size_bytes
        checks.require(checks.has(operand, size))
        yield _Bytes(slot, size, checks.is_output(operand))


def _of_iterations(checks: _Checks, run: Iterations) -> Iterator[_Bytes]:
    for state in run.states:
        size, has_result = state.size_bytes, state.result != ABSENT
        checks.require(checks.has(state.initial, size))
        if has_result:
            checks.require(checks.is_output(state.result) and checks.has(state.result, size))
        spare = size if has_result else -(-size // ALIGNMENT) * ALIGNMENT + size
        if state.spare == ABSENT:
            checks.require(has_result)
        else:
            checks.require(checks.is_scratch(state.spare, spare))
        yield _Bytes(state.input, size, is_written=False)
        yield _Bytes(state.output, size, is_written=True)
    for value in run.kept:
        checks.require(checks.has(value.source, value.size_bytes))
        checks.require(checks.is_output(value.result))
        checks.require(checks.has(value.result, value.size_bytes))
    for parts, is_written in ((run.read, False), (run.written, True)):
        for slices in parts:
            checks.require(not is_written or checks.is_output(slices.operand))
            _check_slices(checks, run.most, slices)
            yield _Bytes(slices.slot, slices.rows * slices.row_bytes, is_written)
    numbers = (
        (run.number_slot, NUMBER_BYTES, False), (run.goes_on_slot, TRUTH_BYTES, False),
        (run.next_slot, TRUTH_BYTES, True),
    )  # fmt: skip
    checks.require(checks.is_scratch(run.numbers, NUMBERS_BYTES))
    for slot, size, is_written in numbers:
        if slot != ABSENT:
            yield _Bytes(slot, size, is_written)


def _check_slices(checks: _Checks, iterations: int, slices: Slices) -> None:
    checks.require(iterations != ABSENT and min(slices.rows, slices.row_bytes, slices.stride) >= 0)
    if slices.rows > 1:
        checks.require(checks.is_scratch(slices.dense, slices.rows * slices.row_bytes))
    if iterations == 0 or slices.rows == 0:
        return
    ends = slices.first, slices.first + (iterations - 1) * slices.step
    extent = (slices.rows - 1) * slices.stride + slices.row_bytes
    checks.require(min(ends) >= 0 and checks.has(slices.operand, max(ends) + extent))
