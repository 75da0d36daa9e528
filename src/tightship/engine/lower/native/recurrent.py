"""Emits recurrent layers: one kernel for all steps and both directions."""

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.native.recurrent_weights import state_weights
from tightship.engine.lower.passes.split_recurrent import activations_of
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides
from tightship.engine.program.program import Operand
from tightship.graph import Node

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
    weights = state_weights(builder, node, _cell(node))
    if weights.scales is not None:
        reads["scales"] = weights.scales
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
        weights.is_narrow,
    )
    builder.native(
        node,
        ("recurrent", kernel),
        [gates, weights.operand, *reads.values()],
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
