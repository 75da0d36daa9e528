"""Packs the weights of a recurrent layer's state as its kernel streams them.

A run reads all of them in every time step. Where two bytes hold one, they are bfloat16: whole
numbers of eight bits, whose sums are scaled afterwards, and weights that may be rounded.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import NativeKernel
from tightship.engine.lower.passes.whole_weights import whole_weights
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import row_major
from tightship.engine.program.program import Operand
from tightship.graph import Constant, Derived, DType, Node, element_count

ALIGNMENT = 16
"""Multiple that the count of hidden units is rounded up to."""
COLUMNS = 64
"""Most columns of a block of weights: its units of each gate."""

Numbers = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class StateWeights:
    """Packed weights, and factors of their sums if they are whole numbers."""

    operand: Operand
    is_narrow: bool = False
    """Whether they are bfloat16."""
    scales: Operand | None = None


def state_weights(builder: Builder, node: Node, cell: str) -> StateWeights:
    """Return the weights of a layer's state; trained ones are packed in a step."""
    source = node.inputs[1]
    directions, rows, hidden = builder.value(source).static_shape
    size = directions * rows * rounded(hidden)
    weights = builder.constant(source)
    if weights is None:
        kernel = NativeKernel.recurrent_weights(cell, directions, hidden)
        target = builder.room(f"{node.name}.streamed", row_major([size]))
        pack = Node(f"{source}.streamed", "Pack", (), ())
        builder.native(
            pack, ("recurrent_weights", kernel), [builder.dense(source)], [target]
        )  # fmt: skip
        return StateWeights(target)
    whole = whole_weights(weights)
    if whole is not None:
        packed = Derived(
            DType.BFLOAT16, (size,), lambda: _narrow(np.swapaxes(whole.whole(), 1, 2), cell),
            whole.parts, ("streamed integers", cell),
        )  # fmt: skip
        return StateWeights(
            _added(builder, f"{source}.integers", packed), is_narrow=True,
            scales=_added(builder, f"{source}.scales", _scales(whole.scale, (rows, hidden), cell)),
        )  # fmt: skip
    is_narrow = builder.options.multiplies_narrow(node)
    packed = Derived(
        DType.BFLOAT16 if is_narrow else DType.FLOAT32, (size,),
        lambda: (_narrow if is_narrow else streamed)(weights.array(), cell), (weights,),
        ("streamed", cell),
    )  # fmt: skip
    return StateWeights(_added(builder, f"{source}.streamed", packed), is_narrow)


def _added(builder: Builder, name: str, constant: Constant) -> Operand:
    builder.add_constant(name, constant)
    return builder.home(name)


def _narrow(weights: Numbers, cell: str) -> Numbers:
    return streamed(weights, cell, DType.BFLOAT16)


def _scales(scale: Constant, lengths: tuple[int, int], cell: str) -> Derived:
    """Repeat scales in the order of a row of packed weights."""
    rows, hidden = lengths
    directions, gates = scale.shape[0], rows // hidden

    def compute() -> Numbers:
        every = np.broadcast_to(scale.array(), (directions, 1, rows))
        return _in_blocks(every.reshape(directions, 1, gates, hidden), cell)

    shape = (directions * gates * rounded(hidden),)
    return Derived(DType.FLOAT32, shape, compute, (scale,), ("streamed scales", lengths, cell))


def streamed(weights: Numbers, cell: str, dtype: DType = DType.FLOAT32) -> Numbers:
    """Order weights by blocks of units; a block has all units of a gate by state element."""
    directions, rows, hidden = weights.shape
    by_gate = weights.reshape(directions, rows // hidden, hidden, hidden)
    return _in_blocks(by_gate.transpose(0, 3, 1, 2), cell, dtype)


def _in_blocks(numbers: Numbers, cell: str, dtype: DType = DType.FLOAT32) -> Numbers:
    """Order numbers, [directions, state elements, gates, units], as `streamed` says."""
    directions, depth, gates, hidden = numbers.shape
    room = rounded(hidden)
    packed = np.zeros(directions * depth * gates * room, dtype.numpy)
    begin = 0
    for by_element in numbers:
        for first, last in ((0, 2), (2, 3)) if cell == "gru" else ((0, gates),):
            units = COLUMNS // (last - first) // ALIGNMENT * ALIGNMENT
            for at in range(0, room, units):
                shape = depth, last - first, min(units, room - at)
                block = packed[begin : begin + element_count(shape)].reshape(shape)
                found = by_element[:, first:last, at : at + units]
                block[:, :, : found.shape[2]] = found
                begin += block.size
    return packed


def rounded(units: int) -> int:
    """Round the count of hidden units up to whole vectors."""
    return -(-units // ALIGNMENT) * ALIGNMENT
