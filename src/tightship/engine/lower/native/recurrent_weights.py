"""Packs the weights of a recurrent layer's state as its kernel streams them.

A run reads all of them in every time step. Where two bytes hold one, they are bfloat16: whole
numbers of eight bits, whose sums are scaled afterwards, and weights that may be rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import NativeKernel
from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import row_major
from tightship.engine.program.program import Operand
from tightship.graph import Constant, Derived, DType, Node, element_count

ALIGNMENT = 16
"""Multiple that the count of hidden units is rounded up to."""
COLUMNS = 64
"""Most columns of a block of weights: its units of each gate."""
INTEGER_MAX = 256
"""Largest whole number up to which bfloat16 has them all."""

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
    factors = _factors(weights)
    if factors is not None:
        integers, scale = factors
        packed = Derived(
            DType.BFLOAT16, (size,), lambda: _narrow(_turned(integers), cell), (integers,),
            ("streamed integers", cell),
        )  # fmt: skip
        return StateWeights(
            _added(builder, f"{source}.integers", packed), is_narrow=True,
            scales=_added(builder, f"{source}.scales", _scales(scale, (rows, hidden), cell)),
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


def _factors(weights: Constant) -> tuple[Constant, Constant] | None:
    """Return the constants whose product, transposed, the weights are: whole numbers and scales.

    Whole numbers are those of eight bits, perhaps less a zero point.
    """
    product = _operands(weights, "Transpose", perm=(0, 2, 1))
    factors = _operands(product[0], "Mul") if product else ()
    if len(factors) != 2 or not _are_whole(factors[0]):
        return None
    whole, scale = factors
    directions, _, rows = whole.shape
    is_scale = scale.shape in ((directions, 1, 1), (directions, 1, rows))
    return (whole, scale) if is_scale and scale.dtype is DType.FLOAT32 else None


def _are_whole(constant: Constant) -> bool:
    """Whether elements are known to be whole numbers that bfloat16 has."""
    if difference := _operands(constant, "Sub"):
        constant, zero = difference
        if element_count(zero.shape) > constant.shape[0] * constant.shape[2]:
            return False
        values = np.asarray(zero.array(), np.float64)
        if (values % 1).any() or values.min() < -128 or values.max() > 255:
            return False
        is_between = _integers(constant) is DType.UINT8 and values.min() >= 0
        is_signed = _integers(constant) is DType.INT8 and values.max() <= 127
        return is_between or is_signed
    return _integers(constant) is not None


def _integers(constant: Constant) -> DType | None:
    """Return the type of eight bits that a constant is converted from."""
    source = _operands(constant, "Cast")
    return source[0].dtype if source and source[0].dtype in NARROW else None


def _operands(
    constant: Constant, operator: str, **attributes: tuple[int, ...]
) -> Sequence[Constant]:
    """Return the operands of the operator that a constant is computed by; empty for another."""
    if not isinstance(constant, Derived) or not isinstance(constant.recipe, tuple):
        return ()
    if constant.recipe[:2] != (operator, "") or len(constant.shape) != 3:
        return ()
    found = dict(constant.recipe[4])
    return constant.sources if all(found.get(k) == v for k, v in attributes.items()) else ()


def _turned(constant: Constant) -> Numbers:
    return np.swapaxes(constant.array(), 1, 2)


def _narrow(weights: Numbers, cell: str) -> Numbers:
    return streamed(weights, cell).astype(DType.BFLOAT16.numpy)


def _scales(scale: Constant, lengths: tuple[int, int], cell: str) -> Derived:
    """Repeat scales in the order of a row of packed weights."""
    rows, hidden = lengths
    directions, gates = scale.shape[0], rows // hidden

    def compute() -> Numbers:
        every = np.broadcast_to(scale.array(), (directions, 1, rows))
        return _in_blocks(every.reshape(directions, 1, gates, hidden), cell)

    shape = (directions * gates * rounded(hidden),)
    return Derived(DType.FLOAT32, shape, compute, (scale,), ("streamed scales", lengths, cell))


def streamed(weights: Numbers, cell: str) -> Numbers:
    """Order weights by blocks of units; a block has all units of a gate by state element."""
    directions, rows, hidden = weights.shape
    by_gate = weights.reshape(directions, rows // hidden, hidden, hidden)
    return _in_blocks(by_gate.transpose(0, 3, 1, 2), cell)


def _in_blocks(numbers: Numbers, cell: str) -> Numbers:
    """Order numbers, [directions, state elements, gates, units], as `streamed` says."""
    directions, depth, gates, hidden = numbers.shape
    room = rounded(hidden)
    packed = np.zeros(directions * depth * gates * room, np.float32)
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
