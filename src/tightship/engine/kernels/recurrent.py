"""RNN, GRU and LSTM, one time step after another in a few small arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, covered, require
from tightship.engine.kernels.recurrent_cell import (
    Cell,
    State,
    Step,
    Weights,
    activations,
    gru_step,
    lstm_step,
    rnn_step,
)
from tightship.engine.kernels.scratch import ScratchLayout, Slot


@dataclass(frozen=True, slots=True)
class _Kind:
    step: Step
    gate_count: int
    activations: tuple[str, ...]
    flag: str


_RNN = _Kind(rnn_step, 1, ("Tanh",), "")
_GRU = _Kind(gru_step, 3, ("Sigmoid", "Tanh"), "linear_before_reset")
_LSTM = _Kind(lstm_step, 4, ("Sigmoid", "Tanh", "Tanh"), "input_forget")

_DIRECTIONS: Mapping[str, tuple[bool, ...]] = {
    "forward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}
"""Flags by direction attribute: whether each direction goes backward."""


def _recurrent(kind: _Kind) -> Builder:
    def build(context: KernelContext) -> Kernel:
        backward = _DIRECTIONS.get(context.text("direction", "forward"))
        backward = covered(backward)
        require(context.dtype(0) in (np.float32, np.float64))
        functions = activations(context, kind.activations, len(backward))
        count = len(kind.activations)
        cells = [
            Cell(
                functions[index * count : (index + 1) * count],
                context.number("clip", 0.0),
                bool(kind.flag and context.integer(kind.flag, 0)),
            )
            for index in range(len(backward))
        ]
        layout = ScratchLayout()
        room = _book(context, kind, layout)
        is_batch_first = bool(context.integer("layout", 0))

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            taken = _Taken(inputs, outputs, is_batch_first)
            state = State(*(slot.of(scratch) for slot in room))
            for index, cell in enumerate(cells):
                _run_direction(kind, cell, taken, state, index, backward=backward[index])

        return Kernel(context.node.operator, run, layout.size_bytes)

    return build


def _book(context: KernelContext, kind: _Kind, layout: ScratchLayout) -> list[Slot]:
    """Book the slots of a `State`, in the order of its fields."""
    require(len(context.shape(0)) == 3 and len(context.shape(2)) == 3)
    batch = context.shape(0)[0 if context.integer("layout", 0) else 1]
    size = context.shape(2)[2]
    wide = (batch, kind.gate_count * size)
    shapes = [(batch, size)] * 4 + [wide, wide, (batch, size)]
    return [layout.slot(context.dtype(0), shape) for shape in shapes]


@dataclass(frozen=True, slots=True)
class _Taken:
    """Operands of one run, time first whatever the layout."""

    inputs: Sequence[Array | None]
    outputs: Sequence[Array | None]
    is_batch_first: bool

    def input(self, index: int) -> Array | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int) -> Array | None:
        return self.outputs[index] if index < len(self.outputs) else None

    @property
    def x(self) -> Array:
        x = self.inputs[0]
        assert x is not None
        return x.swapaxes(0, 1) if self.is_batch_first else x

    def y(self, direction: int) -> Array | None:
        """Return the sequence of a direction, (time, batch, hidden)."""
        y = self.output(0)
        if y is None:
            return None
        return y[:, :, direction].swapaxes(0, 1) if self.is_batch_first else y[:, direction]

    def of_direction(self, state: Array | None, direction: int) -> Array | None:
        """Return a first or last state of a direction, (batch, hidden)."""
        if state is None:
            return None
        return state[:, direction] if self.is_batch_first else state[direction]

    def weights(self, direction: int, kind: _Kind) -> Weights:
        w, r, bias = self.inputs[1], self.inputs[2], self.input(3)
        peephole = self.input(7) if kind is _LSTM else None
        assert w is not None
        assert r is not None
        return Weights(
            w[direction].T,
            r[direction].T,
            None if bias is None else bias[direction].reshape(2, -1),
            None if peephole is None else peephole[direction].reshape(3, -1),
        )


def _run_direction(
    kind: _Kind, cell: Cell, taken: _Taken, state: State, direction: int, *, backward: bool
) -> None:
    weights, x, y = taken.weights(direction, kind), taken.x, taken.y(direction)
    lengths = taken.input(4)
    for current, index in ((state.h, 5), (state.c, 6)):
        first = taken.of_direction(taken.input(index), direction)
        np.copyto(current, 0 if first is None else first)
    times = range(x.shape[0])
    for time in reversed(times) if backward else times:
        kind.step(cell, x[time], weights, state)
        goes_on = True if lengths is None else (time < lengths).reshape(-1, 1)
        np.copyto(state.h, state.new_h, where=goes_on)
        if kind is _LSTM:
            np.copyto(state.c, state.new_c, where=goes_on)
        if y is not None:
            y[time] = 0
            np.copyto(y[time], state.new_h, where=goes_on)
    for current, index in ((state.h, 1), (state.c, 2)):
        last = taken.of_direction(taken.output(index), direction)
        if last is not None:
            np.copyto(last, current)


gru = _recurrent(_GRU)
lstm = _recurrent(_LSTM)
rnn = _recurrent(_RNN)
