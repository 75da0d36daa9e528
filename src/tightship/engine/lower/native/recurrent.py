"""Emits recurrent layers: one kernel for all steps and both directions."""

import numpy as np
from numpy.typing import NDArray

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.passes.split_recurrent import activations_of
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides, row_major
from tightship.engine.lower.steps.strides import byte_strides
from tightship.engine.program.program import Operand
from tightship.graph import Derived, DType, Node, element_count

ALIGNMENT = 16
"""Multiple that the count of hidden units is rounded up to."""
COLUMNS = 64
"""Most columns of a block of weights: its units of each gate."""
READ = ("reset_bias", "lengths", "state", "cell_state", "peephole")
WRITTEN = ("sequence", "last_state", "last_cell_state")
"""Optional results, by the kernel's names."""


def recurrent(builder: Builder, node: Node) -> None:
    """Emit the kernel; results that are never read are not written."""
    directions, _, hidden = builder.value(node.inputs[1]).static_shape
    by_batch = bool(node.attributes.get("layout", 0))
    gates = builder.dense(node.inputs[0])
    steps, batch = (gates.shape[axis] for axis in ((1, 0) if by_batch else (0, 1)))
    reads = {
        part: builder.dense(name) for part, name in zip(READ, node.inputs[2:], strict=True) if name
    }
    writes = {
        part: _target(builder, name, part)
        for part, name in zip(WRITTEN, node.outputs, strict=False)
        if name in builder.graph.outputs or builder.readers(name)
    }
    per_step, per_row = _elements(gates, (1, 0) if by_batch else (0, 1))
    sequence: tuple[int, ...] = (0, 0, 0)
    if "sequence" in writes:
        sequence = _elements(writes["sequence"], (1, 2, 0) if by_batch else (0, 1, 2))
    states = (hidden, directions * hidden) if by_batch else (batch * hidden, hidden)
    kernel = NativeKernel.recurrent(
        (steps, batch, directions, hidden),
        _rule(node),
        [*reads, *writes],
        ((per_step, per_row), sequence, states),
    )
    builder.native(
        node,
        ("recurrent", kernel),
        [gates, _packed(builder, node), *reads.values()],
        list(writes.values()),
    )


def _rule(node: Node) -> NativeKernel.RecurrentRule:
    activations = activations_of(node)
    limit = node.number("clip", 0.0)
    assert activations is not None
    return NativeKernel.RecurrentRule(
        _cell(node),
        activations,
        node.attributes.get("direction") == "reverse",
        bool(node.attributes.get("input_forget", 0)),
        limit if limit > 0 else float("inf"),
    )


def _cell(node: Node) -> str:
    if node.operator == "GRU":
        return "linear_gru" if node.attributes.get("linear_before_reset", 0) else "gru"
    return {"LSTM": "lstm", "RNN": "plain"}[node.operator]


def _elements(operand: Operand, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the elements from one index of these axes to the next."""
    strides = byte_strides(operand)
    return tuple(strides[axis] // operand.dtype.itemsize for axis in axes)


def _target(builder: Builder, name: str, part: str) -> Operand:
    """Make the operand of a result; a sequence has the directions of a row side by side.

    The Transpose and Reshape that exporters write to join the directions then become views.
    """
    shape = builder.value(name).static_shape
    if part != "sequence" or not builder.options.use_onednn or builder.is_like_output(name):
        return builder.output(name)
    if builder.value(name).static_shape[1] == 1 or shape[2] == 1:
        return builder.output(name)
    strides = dense_strides([shape[0], shape[2], shape[1], shape[3]])
    along = [strides[0], strides[2], strides[1], strides[3]]
    return builder.output(name, MemoryDesc(list(shape), "float32", along))


def _packed(builder: Builder, node: Node) -> Operand:
    """Return the state's weights as the kernel streams them; trained ones are packed in a step."""
    source, cell = node.inputs[1], _cell(node)
    name = f"{source}.streamed"
    directions, rows, hidden = builder.value(source).static_shape
    size = directions * rows * _rounded(hidden)
    weights = builder.constant(source)
    if weights is None:
        kernel = NativeKernel.recurrent_weights(cell, directions, hidden)
        target = builder.room(f"{node.name}.streamed", row_major([size]))
        reads = [builder.dense(source)]
        builder.native(Node(name, "Pack", (), ()), ("recurrent_weights", kernel), reads, [target])
        return target
    builder.add_constant(
        name,
        Derived(
            DType.FLOAT32, (size,), lambda: streamed(weights.array(), cell), (weights,),
            ("streamed", cell),
        ),
    )  # fmt: skip
    return builder.home(name)


def streamed(weights: NDArray[np.generic], cell: str) -> NDArray[np.generic]:
    """Order weights by blocks of units; a block has all units of a gate by state element."""
    directions, rows, hidden = weights.shape
    gates, room = rows // hidden, _rounded(hidden)
    packed = np.zeros(directions * rows * room, np.float32)
    begin = 0
    for direction in weights:
        by_element = direction.reshape(gates, hidden, hidden).transpose(2, 0, 1)
        for first, last in ((0, 2), (2, 3)) if cell == "gru" else ((0, gates),):
            units = COLUMNS // (last - first) // ALIGNMENT * ALIGNMENT
            for at in range(0, room, units):
                shape = hidden, last - first, min(units, room - at)
                block = packed[begin : begin + element_count(shape)].reshape(shape)
                found = by_element[:, first:last, at : at + units]
                block[:, :, : found.shape[2]] = found
                begin += block.size
    return packed


def _rounded(units: int) -> int:
    return -(-units // ALIGNMENT) * ALIGNMENT
