"""Gradients of LSTM, GRU and RNN: recompute the gates, then go backward in time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, require
from tightship.engine.kernels.logistic import logistic
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout

_X, _W, _R, _B, _H, _C, _Y, _DY, _DY_H, _DY_C = range(10)
"""Indices of the inputs; outputs are the gradients of the first six."""
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Flags by direction attribute: whether each direction goes backward."""


@dataclass(slots=True)
class _Room:
    """Scratch of one direction: gates and cells of all times, and arrays of one time."""

    gates: Array
    cells: Array
    dh: Array
    dc: Array
    slope: Array
    work: Array
    state: Array
    dgates: Array
    dx: Array
    dw: Array
    dr: Array
    db: Array


_Pass = Callable[[Operands, Operands, _Room, range], None]
"""Function `pass(given, wanted, room, order)` over one direction, with times in `order`."""


def _recurrent(gate_count: int, passes: Callable[[KernelContext], Sequence[_Pass]]) -> Builder:
    """Make a kernel that runs passes over each direction."""

    def build(context: KernelContext) -> Kernel:
        dtype = context.dtype(_X)
        require(is_real(dtype))
        (times, batch, width), (_, wide, _) = context.shape(_X), context.shape(_W)
        one = (batch, wide // gate_count)
        turned = _DIRECTIONS[context.text("direction", "forward")]
        layout = ScratchLayout()
        shapes = [
            (times, gate_count, *one), (times, *one), one, one, one, one, one, (batch, wide),
            (batch, width), (wide, width), (wide, one[1]), (wide,),
        ]  # fmt: skip
        slots = [layout.slot(dtype, shape) for shape in shapes]
        chosen = passes(context)

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            room = _Room(*(slot.of(scratch) for slot in slots))
            if outputs[_X] is not None:
                outputs[_X].fill(0)
            for index, is_turned in enumerate(turned):
                order = range(times)[::-1] if is_turned else range(times)
                given = [_of(inputs, place, index) for place in range(10)]
                wanted = [_of(outputs, place, index) for place in range(6)]
                for target in wanted[_W : _B + 1]:
                    if target is not None:
                        target.fill(0)
                for each in chosen:
                    each(given, wanted, room, order)

        return Kernel(context.node.operator, run, layout.size_bytes)

    return build


def _of(operands: Operands, place: int, direction: int) -> Any:  # noqa: ANN401
    """Return a direction's part of an operand; None if it is left out."""
    if place >= len(operands) or operands[place] is None or place == _X:
        return operands[place] if place < len(operands) else None
    is_of_times = place in (_Y, _DY)
    return operands[place][:, direction] if is_of_times else operands[place][direction]


def _before(given: Operands, room: _Room, order: range, step: int) -> Array:
    """Return the state before a step."""
    if step:
        state: Array = given[_Y][order[step - 1]]
        return state
    np.copyto(room.state, 0 if given[_H] is None else given[_H])
    return room.state


def _replay_lstm(given: Operands, _: Operands, room: _Room, order: range) -> None:
    """Recompute the gates and cells of all times from the states that the forward run wrote."""
    size = room.dh.shape[1]
    for step, time in enumerate(order):
        np.matmul(given[_X][time], given[_W].T, out=room.dgates)
        for gate in range(4):
            part = slice(gate * size, (gate + 1) * size)
            value = room.gates[time, gate]
            np.matmul(_before(given, room, order, step), given[_R][part].T, out=value)
            np.add(value, room.dgates[:, part], out=value)
            if given[_B] is not None:
                np.add(value, given[_B][part], out=value)
                np.add(value, given[_B][4 * size :][part], out=value)
            (np.tanh if gate == 3 else logistic)(value, out=value)
        enter, _, forget, new = room.gates[time]
        np.multiply(forget, _cell(given, room, order, step), out=room.cells[time])
        np.multiply(enter, new, out=room.work)
        np.add(room.cells[time], room.work, out=room.cells[time])


def _cell(given: Operands, room: _Room, order: range, step: int) -> Array:
    """Return the cell before a step."""
    if step:
        cell: Array = room.cells[order[step - 1]]
        return cell
    np.copyto(room.slope, 0 if given[_C] is None else given[_C])
    return room.slope


def _turn_lstm_back(given: Operands, wanted: Operands, room: _Room, order: range) -> None:
    """Compute gradients of all operands, the last time first."""
    for current, source in ((room.dh, given[_DY_H]), (room.dc, given[_DY_C])):
        np.copyto(current, 0 if source is None else source)
    for step in reversed(range(len(order))):
        time = order[step]
        if given[_DY] is not None:
            np.add(room.dh, given[_DY][time], out=room.dh)
        _through_gates(given, room, order, step)
        _through_inputs(given, wanted, room, time)
        _through_recurrence(given, wanted, room, _before(given, room, order, step))
    for target, last in ((wanted[_H], room.dh), (wanted[_C], room.dc)):
        if target is not None:
            np.copyto(target, last)


def _through_recurrence(given: Operands, wanted: Operands, room: _Room, before: Array) -> None:
    """Add one time's contribution to the state before, its weights and the biases."""
    if wanted[_R] is not None:
        np.matmul(room.dgates.T, before, out=room.dr)
        np.add(wanted[_R], room.dr, out=wanted[_R])
    if wanted[_B] is not None:
        np.add.reduce(room.dgates, axis=0, out=room.db)
        for half in wanted[_B].reshape((2, -1)):
            np.add(half, room.db, out=half)
    np.matmul(room.dgates, given[_R], out=room.dh)


def _through_inputs(given: Operands, wanted: Operands, room: _Room, time: int) -> None:
    """Add one time's contribution to the input and its weights."""
    if wanted[_X] is not None:
        np.matmul(room.dgates, given[_W], out=room.dx)
        np.add(wanted[_X][time], room.dx, out=wanted[_X][time])
    if wanted[_W] is not None:
        np.matmul(room.dgates.T, given[_X][time], out=room.dw)
        np.add(wanted[_W], room.dw, out=wanted[_W])


def _through_gates(given: Operands, room: _Room, order: range, step: int) -> None:
    """Compute gradients of one time's gates, before their activations, and of the cell before."""
    time, size, work = order[step], room.dh.shape[1], room.work
    enter, leave, forget, new = room.gates[time]
    d_enter, d_leave, d_forget, d_new = (
        room.dgates[:, gate * size : (gate + 1) * size] for gate in range(4)
    )
    np.tanh(room.cells[time], out=work)
    np.multiply(room.dh, work, out=d_leave)
    np.multiply(work, work, out=work)
    np.subtract(1, work, out=work)
    np.multiply(work, leave, out=work)
    np.multiply(work, room.dh, out=work)
    np.add(room.dc, work, out=room.dc)
    np.multiply(room.dc, new, out=d_enter)
    np.multiply(room.dc, _cell(given, room, order, step), out=d_forget)
    np.multiply(room.dc, enter, out=d_new)
    np.multiply(room.dc, forget, out=room.dc)
    for target, gate in ((d_enter, enter), (d_leave, leave), (d_forget, forget)):
        _before_logistic(target, gate, work)
    _before_tanh(d_new, new, work)


def _before_logistic(gradient: Array, gate: Array, work: Array) -> None:
    np.multiply(gradient, gate, out=gradient)
    np.subtract(1, gate, out=work)
    np.multiply(gradient, work, out=gradient)


def _before_tanh(gradient: Array, gate: Array, work: Array) -> None:
    np.multiply(gate, gate, out=work)
    np.subtract(1, work, out=work)
    np.multiply(gradient, work, out=gradient)


def _turn_rnn_back(context: KernelContext) -> _Pass:
    """Make the backward pass, which reads only the states, the last time first."""
    names = context.node.attributes.get("activations", ())
    assert isinstance(names, tuple)
    is_cut = "Relu" in names

    def turn_back(given: Operands, wanted: Operands, room: _Room, order: range) -> None:
        np.copyto(room.dh, 0 if given[_DY_H] is None else given[_DY_H])
        for step in reversed(range(len(order))):
            time = order[step]
            if given[_DY] is not None:
                np.add(room.dh, given[_DY][time], out=room.dh)
            np.copyto(room.dgates, room.dh)
            if is_cut:
                np.sign(given[_Y][time], out=room.work)
                np.multiply(room.dgates, room.work, out=room.dgates)
            else:
                _before_tanh(room.dgates, given[_Y][time], room.work)
            _through_inputs(given, wanted, room, time)
            _through_recurrence(given, wanted, room, _before(given, room, order, step))
        if wanted[_H] is not None:
            np.copyto(wanted[_H], room.dh)

    return turn_back


def _replay_gru(context: KernelContext) -> _Pass:
    """Recompute the gates of all times, and with a late reset the part that is reset."""
    is_late = bool(context.integer("linear_before_reset", 0))

    def replay(given: Operands, _: Operands, room: _Room, order: range) -> None:
        size, bias = room.dh.shape[1], given[_B]
        for step, time in enumerate(order):
            source, share = _before(given, room, order, step), room.cells[time]
            reset = room.gates[time, 1]
            np.matmul(given[_X][time], given[_W].T, out=room.dgates)
            for gate, value in enumerate(room.gates[time]):
                part = slice(gate * size, (gate + 1) * size)
                if gate == 2 and not is_late:
                    source = np.multiply(reset, source, out=room.work)
                np.matmul(source, given[_R][part].T, out=share)
                if bias is not None:
                    np.add(share, bias[3 * size :][part], out=share)
                np.copyto(value, share)
                if gate == 2 and is_late:
                    np.multiply(value, reset, out=value)
                np.add(value, room.dgates[:, part], out=value)
                if bias is not None:
                    np.add(value, bias[part], out=value)
                (np.tanh if gate == 2 else logistic)(value, out=value)

    return replay


def _turn_gru_back(context: KernelContext) -> _Pass:
    """Make the backward pass for all operands, the last time first."""
    is_late = bool(context.integer("linear_before_reset", 0))

    def turn_back(given: Operands, wanted: Operands, room: _Room, order: range) -> None:
        np.copyto(room.dh, 0 if given[_DY_H] is None else given[_DY_H])
        for step in reversed(range(len(order))):
            time = order[step]
            if given[_DY] is not None:
                np.add(room.dh, given[_DY][time], out=room.dh)
            before = _before(given, room, order, step)
            _through_gru(given, room, time, before, is_late=is_late)
            _through_inputs(given, wanted, room, time)
            _through_states(given, wanted, room, time, before, is_late=is_late)
        if wanted[_H] is not None:
            np.copyto(wanted[_H], room.dh)

    return turn_back


def _through_gru(given: Operands, room: _Room, time: int, before: Array, *, is_late: bool) -> None:
    """Compute gradients of one time's gates, and of the state before as far as it was kept."""
    size, work = room.dh.shape[1], room.work
    keep, reset, new = room.gates[time]
    d_keep, d_reset, d_new = (room.dgates[:, gate * size :][:, :size] for gate in range(3))
    np.subtract(before, new, out=d_keep)
    np.multiply(d_keep, room.dh, out=d_keep)
    _before_logistic(d_keep, keep, work)
    np.subtract(1, keep, out=d_new)
    np.multiply(d_new, room.dh, out=d_new)
    _before_tanh(d_new, new, work)
    np.multiply(room.dh, keep, out=room.dc)
    if is_late:
        np.multiply(d_new, reset, out=room.slope)
        np.multiply(d_new, room.cells[time], out=d_reset)
    else:
        np.matmul(d_new, given[_R][2 * size :], out=room.slope)
        np.multiply(room.slope, before, out=d_reset)
        np.multiply(room.slope, reset, out=work)
        np.add(room.dc, work, out=room.dc)
    _before_logistic(d_reset, reset, work)


def _through_states(
    given: Operands, wanted: Operands, room: _Room, time: int, before: Array, *, is_late: bool
) -> None:
    """Add one time's contribution to the state before, its weights and the biases."""
    size, work, weights = room.dh.shape[1], room.work, given[_R]
    first, last = room.dgates[:, : 2 * size], room.dgates[:, 2 * size :]
    np.matmul(first, weights[: 2 * size], out=work)
    np.add(room.dc, work, out=room.dc)
    if is_late:
        last = room.slope
        np.matmul(last, weights[2 * size :], out=work)
        np.add(room.dc, work, out=room.dc)
    if wanted[_R] is not None:
        np.matmul(first.T, before, out=room.dr[: 2 * size])
        source = before if is_late else np.multiply(room.gates[time, 1], before, out=work)
        np.matmul(last.T, source, out=room.dr[2 * size :])
        np.add(wanted[_R], room.dr, out=wanted[_R])
    if wanted[_B] is not None:
        of_inputs, of_states = wanted[_B].reshape((2, -1))
        np.add.reduce(room.dgates, axis=0, out=room.db)
        np.add(of_inputs, room.db, out=of_inputs)
        np.add.reduce(last, axis=0, out=room.db[2 * size :])
        np.add(of_states, room.db, out=of_states)
    np.copyto(room.dh, room.dc)


gru = _recurrent(3, lambda context: (_replay_gru(context), _turn_gru_back(context)))
lstm = _recurrent(4, lambda _: (_replay_lstm, _turn_lstm_back))
rnn = _recurrent(1, lambda context: (_turn_rnn_back(context),))
