"""Cuts consecutive steps out of a program, as a program that is planned, stored and run alone.

Steps of a stage keep their kernels and layouts; slots and weights are numbered anew. A value that
crosses a cut is an output of the stage that writes it and an input of those that read it. Its name
and type are the same in all of them, because both follow from the whole program.

A value that is written over another, as a sum in place is, cannot lie in the caller's memory, nor
what it is written over. Where one of them crosses a cut, each stage copies it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tightship.cluster.cut_table import lifetimes_of, slots_of, weights_of
from tightship.cluster.stage_ports import ports
from tightship.engine.lower.steps.copy_step import copy_step
from tightship.engine.plan.footprint import stored_runtime_bytes
from tightship.engine.plan.placement import Placement, place
from tightship.engine.program.program import (
    ControlWork,
    KernelWork,
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    ReferenceWork,
    Sharing,
    Slot,
    Space,
    Work,
)
from tightship.engine.stored.container import PAGE_BYTES
from tightship.planner import AliasKind

Interval = tuple[int, int]


class StagePrograms:
    """Program from which stages are cut."""

    def __init__(self, lowered: Lowered) -> None:
        """Find what may cross cuts of a program."""
        self.lowered = lowered
        self._found = lifetimes_of(lowered)
        self._ports = ports(lowered)

    def stage(self, steps: Interval) -> Lowered:
        """Return the steps `[start, stop)` as a program of its own."""
        start, stop = steps
        own, found = self.lowered.steps[start:stop], self._found
        touched = sorted(
            set(slots_of(each for step in own for each in (*step.reads, *step.writes)))
        )
        received = {slot for slot in touched if not start <= found.first_write[slot] < stop}
        sent = {slot for slot in touched if slot not in received and found.last_read[slot] >= stop}
        crossing = sorted(received | sent)
        copied = [slot for slot in crossing if slot in _tied(own) and self._is_inside(slot)]
        moved = _Moved(
            {slot: index for index, slot in enumerate(touched)},
            {
                weight: index
                for index, weight in enumerate(sorted(frozenset().union(*map(weights_of, own))))
            },
            frozenset(crossing) - frozenset(copied),
        )
        places = moved.slots | {slot: len(touched) + each for each, slot in enumerate(copied)}
        crossed = {
            slot: self._ports[slot]._replace(space=Space.EXTERNAL, slot=places[slot])
            for slot in crossing
        }
        copies = {}
        for slot in copied:
            ends = crossed[slot], moved.operand(self._ports[slot])
            name = f"{crossed[slot].name}.copy"
            copies[slot] = copy_step(name, *(ends if slot in received else reversed(ends)))
        return self.lowered._replace(steps=(
                *[copies[slot] for slot in copied if slot in received],
                *[moved.step(step) for step in own],
                *[copies[slot] for slot in copied if slot in sent],
            ),
            slots=(
                *[self._slot(slot, external=slot in moved.external) for slot in touched],
                *[self._slot(slot, external=True) for slot in copied],
            ),
            weights=tuple([self.lowered.weights[index] for index in moved.weights]),
            inputs={each.name: each for slot, each in crossed.items() if slot in received},
            outputs={each.name: each for slot, each in crossed.items() if slot in sent},
        )  # fmt: skip

    def _is_inside(self, slot: int) -> bool:
        return not self.lowered.slots[slot].external

    def _slot(self, slot: int, *, external: bool) -> Slot:
        return self.lowered.slots[slot]._replace(external=external)

    def placed(self, steps: Interval) -> tuple[Placement, int]:
        """Place a stage; return it with the bytes of its plan: tensors, weights and runtime.

        Weights count in whole pages, as a file has them.
        """
        placement = place(self.stage(steps))
        pages = -(-placement.weights_bytes // PAGE_BYTES)
        placement = placement._replace(weights_bytes=pages * PAGE_BYTES)
        tensors = placement.weights_bytes + placement.arena_bytes + placement.io_bytes
        return placement, tensors + stored_runtime_bytes(placement.lowered)


@dataclass(frozen=True, slots=True)
class _Moved:
    """New numbers of slots and weights of a stage by their numbers in the whole program."""

    slots: dict[int, int]
    weights: dict[int, int]
    external: frozenset[int]

    def operand(self, operand: Operand) -> Operand:
        if operand.space is Space.WEIGHTS:
            return operand._replace(slot=self.weights[operand.slot])
        if operand.space is Space.OBJECT:
            return operand
        space = Space.EXTERNAL if operand.slot in self.external else Space.ARENA
        return operand._replace(space=space, slot=self.slots[operand.slot])

    def step(self, step: LoweredStep) -> LoweredStep:
        return step._replace(
            reads=self._all(step.reads),
            writes=self._all(step.writes),
            work=self._work(step.work),
            sharing=tuple([
                Sharing(self.slots[each.output], self.slots[each.input], each.kind)
                for each in step.sharing
            ]),
        )  # fmt: skip

    def _all(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        return tuple([self.operand(each) for each in operands])

    def _some(self, operands: Iterable[Operand | None]) -> tuple[Operand | None, ...]:
        return tuple([each and self.operand(each) for each in operands])

    def _work(self, work: Work) -> Work:
        if isinstance(work, PrimitiveWork):
            arguments = [(number, self.operand(each)) for number, each in work.arguments]
            return PrimitiveWork(work.desc, tuple(arguments))
        if isinstance(work, NativeWork):
            return NativeWork(work.kernel, self._all(work.operands))
        if isinstance(work, ControlWork):
            outputs, inputs = self._all(work.outputs), self._all(work.inputs)
            return work._replace(outputs=outputs, inputs=inputs)
        if isinstance(work, KernelWork | ReferenceWork):
            return work._replace(inputs=self._some(work.inputs), outputs=self._some(work.outputs))
        return work


def _tied(steps: Iterable[LoweredStep]) -> frozenset[int]:
    """Return the slots that steps write over others, or that are written over."""
    ties = [each for step in steps for each in step.sharing if each.kind is AliasKind.TIED]
    return frozenset(slot for each in ties for slot in (each.output, each.input))
