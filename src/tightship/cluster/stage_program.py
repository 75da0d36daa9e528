"""Cuts consecutive steps out of a program, as a program that is planned, stored and run alone.

Steps of a stage keep their kernels and layouts; slots and weights are numbered anew. A value that
crosses a cut is an output of the stage that writes it and an input of those that read it. Its name
and type are the same in all of them, because both follow from the whole program.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tightship.cluster.cut_table import lifetimes_of, slots_of, weights_of
from tightship.engine.plan.footprint import stored_runtime_bytes
from tightship.engine.plan.placement import Placement, place
from tightship.engine.program.program import (
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
from tightship.graph import DType

Interval = tuple[int, int]


class StagePrograms:
    """Program from which stages are cut."""

    def __init__(self, lowered: Lowered) -> None:
        """Find what may cross cuts of a program."""
        self.lowered = lowered
        self._found = lifetimes_of(lowered)
        self._ports = _ports(lowered)

    def stage(self, steps: Interval) -> Lowered:
        """Return the steps `[start, stop)` as a program of its own."""
        start, stop = steps
        own, found = self.lowered.steps[start:stop], self._found
        touched = sorted(
            set(slots_of(each for step in own for each in (*step.reads, *step.writes)))
        )
        received = {slot for slot in touched if not start <= found.first_write[slot] < stop}
        sent = {slot for slot in touched if slot not in received and found.last_read[slot] >= stop}
        moved = _Moved(
            {slot: index for index, slot in enumerate(touched)},
            {
                weight: index
                for index, weight in enumerate(sorted(frozenset().union(*map(weights_of, own))))
            },
            frozenset(received | sent),
        )
        ports = {slot: self._ports[slot] for slot in sorted(received | sent)}
        return replace(
            self.lowered,
            steps=tuple([moved.step(step) for step in own]),
            slots=tuple([
                Slot(name, self.lowered.slots[slot].size_bytes, slot in moved.external)
                for slot, name in ((slot, self.lowered.slots[slot].name) for slot in touched)
            ]),
            weights=tuple([self.lowered.weights[index] for index in moved.weights]),
            inputs={p.name: moved.operand(p) for slot, p in ports.items() if slot in received},
            outputs={p.name: moved.operand(p) for slot, p in ports.items() if slot in sent},
        )  # fmt: skip

    def placed(self, steps: Interval) -> tuple[Placement, int]:
        """Place a stage; return it with the bytes of its plan: tensors, weights and runtime.

        Weights count in whole pages, as a file has them.
        """
        placement = place(self.stage(steps))
        pages = -(-placement.weights_bytes // PAGE_BYTES)
        placement = replace(placement, weights_bytes=pages * PAGE_BYTES)
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
        if isinstance(work, KernelWork | ReferenceWork):
            return replace(work, inputs=self._some(work.inputs), outputs=self._some(work.outputs))
        return work


def _ports(lowered: Lowered) -> dict[int, Operand]:
    """Return an operand of its own name for each slot, as which it crosses a cut.

    Inputs and outputs of the program are themselves. Other values have their type and shape if they
    are row-major wherever they are used, and are bytes otherwise: blocks of channels, or parts.
    """
    own = {each.slot: each._replace(name=name)
           for name, each in (*lowered.inputs.items(), *lowered.outputs.items())}  # fmt: skip
    plain: dict[int, Operand | None] = {}
    for step in lowered.steps:
        for each in (*step.writes, *step.reads):
            if each.space is Space.ARENA:
                first = plain.setdefault(each.slot, each)
                if first is not None and (each.dtype is not first.dtype or not _is_plain(each)):
                    plain[each.slot] = None
    taken = {each.name for each in own.values()}
    for slot, found in plain.items():
        size, name = lowered.slots[slot].size_bytes, lowered.slots[slot].name
        while name in taken:
            name = f"{name}#{slot}"
        taken.add(name)
        if found is not None and found._replace(desc=None).size_bytes == size:
            port = found._replace(name=name, desc=None)
        else:
            port = Operand(name, Space.ARENA, slot, DType.UINT8, (size,))
        own.setdefault(slot, port)
    return own


def _is_plain(operand: Operand) -> bool:
    desc = operand.desc
    if operand.offset_bytes:
        return False
    return desc is None or (desc.is_plain and not desc.offset_bytes and _is_row_major(operand))


def _is_row_major(operand: Operand) -> bool:
    assert operand.desc is not None
    length, expected = 1, []
    for dimension in reversed(operand.desc.dims):
        expected.append(length)
        length *= dimension
    return all(
        stride == wanted or dimension == 1
        for stride, wanted, dimension in zip(
            operand.desc.strides, reversed(expected), operand.desc.dims, strict=True
        )
    )
