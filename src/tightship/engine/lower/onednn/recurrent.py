"""LSTM, GRU and RNN layers: one primitive for all steps and both directions.

ONNX has `Y` as (steps, directions, batch, hidden) and oneDNN as (steps, batch, directions *
hidden): the same bytes under other strides, so that is how `Y` lies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, SRC, Builder
from tightship.engine.lower.layouts import dense_strides, row_major
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.program import Operand, PrimitiveWork
from tightship.graph import Constant, Derived, DType, Fill, Node, element_count

WEIGHTS_LAYER, WEIGHTS_ITER, BIAS = 33, 34, 41
REFERENCE_CELLS = frozenset({"gru", "linear_gru"})
"""Cells whose only implementation is called `ref`, and is as fast as the others: its products
are generated code. Weights stay row-major, since what it would pack has no describable layout.
It takes 74 KB of heap while it runs, whatever the shape."""
ZEROS_MAX = 1 << 16
"""Elements of an initial state that are looked at, to see whether all are zero."""


@dataclass(frozen=True, slots=True)
class _Kind:
    cell: str
    gates: tuple[int, ...]
    """ONNX's gates in the order of oneDNN."""
    activations: tuple[str, ...]
    states: int


KINDS = {
    "RNN": _Kind("tanh", (0,), ("tanh",), 1),
    "GRU": _Kind("gru", (0, 1, 2), ("sigmoid", "tanh"), 1),
    "LSTM": _Kind("lstm", (0, 2, 3, 1), ("sigmoid", "tanh", "tanh"), 2),
}
DEFAULTS = {"clip": 0.0, "input_forget": 0, "layout": 0}


def recurrent(builder: Builder, node: Node) -> bool:
    """A layer with constant weights, the usual activations, and nothing clipped or peeped at."""
    kind = _kind(node)
    if kind is None or any(builder.constant(name) is None for name in node.inputs[1:4] if name):
        return False
    layer = _Layer(builder, node, kind)
    desc = layer.describe()
    if desc is None:
        return False
    layer.emit(desc)
    return True


def _kind(node: Node) -> _Kind | None:
    """What the cell computes; None if oneDNN has no such cell."""
    kind = KINDS[node.operator]
    if any(node.attributes.get(name, usual) != usual for name, usual in DEFAULTS.items()):
        return None
    if any(node.inputs[index : index + 1] not in ((), ("",)) for index in (4, 7)):
        return None
    directions = 2 if node.attributes.get("direction") == "bidirectional" else 1
    named = node.attributes.get("activations", kind.activations * directions)
    assert isinstance(named, tuple)
    activations = tuple(str(name).lower() for name in named)
    if node.operator == "RNN" and activations == ("relu",) * directions:
        return _Kind("relu", kind.gates, (), 1)
    if activations != kind.activations * directions:
        return None
    if node.operator == "GRU" and node.attributes.get("linear_before_reset", 0):
        return _Kind("linear_gru", kind.gates, (), 1)
    return kind


class _Layer:
    """One layer: its operands as oneDNN wants them described."""

    def __init__(self, builder: Builder, node: Node, kind: _Kind) -> None:
        self.builder, self.node, self.kind = builder, node, kind
        self.steps, self.batch, self.width = builder.value(node.inputs[0]).static_shape
        self.directions, _, self.hidden = builder.value(node.inputs[2]).static_shape
        given = [name for name in node.inputs[5:7] if name and not _is_zero(builder, name)]
        self.initial = [*node.inputs[5:7], "", ""][: kind.states] if given else []
        self.weights = MemoryDesc if kind.cell in REFERENCE_CELLS else MemoryDesc.any
        self.outputs = [*node.outputs, "", ""][:3]
        self.state = MemoryDesc([1, self.directions, self.batch, self.hidden])

    def describe(self) -> PrimitiveDesc | None:
        """The primitive, weights laid out as it likes."""
        gates, wide = len(self.kind.gates), self.directions * self.hidden
        bias_gates = gates + (self.kind.cell == "linear_gru")
        missing: list[MemoryDesc | None] = [None, None]
        initial = [*([self.state] * len(self.initial)), *missing][:2]
        final = [self.state if self._is_final(index) else None for index in (0, 1)]
        operands = [
            MemoryDesc([self.steps, self.batch, self.width]),
            *initial,
            self.weights([1, self.directions, self.width, gates, self.hidden]),
            self.weights([1, self.directions, self.hidden, gates, self.hidden]),
            MemoryDesc([1, self.directions, bias_gates, self.hidden]),
            MemoryDesc([self.steps, self.batch, wide]),
            *final,
        ]
        direction = str(self.node.attributes.get("direction", "forward"))

        def create() -> PrimitiveDesc:
            return PrimitiveDesc.recurrent(self.kind.cell, direction, operands, Attributes())

        return create() if self.kind.cell in REFERENCE_CELLS else fast(create)

    def _is_final(self, index: int) -> bool:
        """Whether a final state is wanted; an LSTM gives both or none."""
        return index < self.kind.states and any(self.outputs[1:])

    def emit(self, desc: PrimitiveDesc) -> None:
        """Add the step and everything it reads."""
        builder, node = self.builder, self.node
        source = MemoryDesc([self.steps, self.batch, self.width])
        bias = self._bias(node.inputs[3] if len(node.inputs) > 3 else "")
        bias_desc = desc.operand(BIAS)
        reads: list[tuple[int, Operand]] = [(SRC, builder.in_layout(node.inputs[0], source))]
        reads += [(SRC + 1 + i, self._state(name)) for i, name in enumerate(self.initial)]
        reads += [
            (WEIGHTS_LAYER, self._weights(node.inputs[1], self.width, desc.operand(WEIGHTS_LAYER))),
            (WEIGHTS_ITER, self._weights(node.inputs[2], self.hidden, desc.operand(WEIGHTS_ITER))),
            (BIAS, builder.weight(bias, bias_desc, bias_desc)),
        ]
        writes = [(DST, self._sequence())]
        finals = [index for index in (0, 1) if self._is_final(index)]
        writes += [(DST + 1 + index, self._final(index)) for index in finals]
        builder.step(
            node,
            ("onednn", desc.implementation),
            (tuple(o for _, o in reads), tuple(o for _, o in writes)),
            PrimitiveWork(desc, (*reads, *writes)),
            scratch_bytes=desc.scratchpad_bytes,
        )

    def _state(self, name: str) -> Operand:
        """An initial state; zeros where only the other one is given."""
        if not name:
            name = f"{self.node.name}.zeros"
            shape = (self.directions, self.batch, self.hidden)
            self.builder.add_constant(name, Fill(np.zeros((), np.float32), shape))
        return self.builder.in_layout(name, self.state)

    def _sequence(self) -> Operand:
        shape = [self.steps, self.directions, self.batch, self.hidden]
        if not self.outputs[0]:
            return self.builder.room(f"{self.node.name}.sequence", row_major(shape))
        along = dense_strides([self.steps, self.batch, self.directions, self.hidden])
        strides = [along[0], along[2], along[1], along[3]]
        if self.batch == 1 or self.directions == 1:
            strides = dense_strides(shape)
        return self.builder.output(self.outputs[0], MemoryDesc(shape, "float32", strides))

    def _final(self, index: int) -> Operand:
        name = self.outputs[1 + index]
        if name:
            return self.builder.output(name)
        return self.builder.room(f"{self.node.name}.state{index}", self.state)

    def _weights(self, name: str, width: int, desc: MemoryDesc) -> Operand:
        """Weights as (1, directions, width, gates, hidden), in oneDNN's order of gates."""
        gates, hidden = len(self.kind.gates), self.hidden
        if self.kind.gates != tuple(range(gates)):
            name = self._ordered(name)
        matrix = hidden * width
        dims = [1, self.directions, width, gates, hidden]
        outer = gates * matrix
        strides = [self.directions * outer, outer, 1, matrix, width]
        return self.builder.weight(name, MemoryDesc(dims, "float32", strides), desc)

    def _ordered(self, name: str) -> str:
        constant = self.builder.constant(name)
        assert constant is not None
        order, shape = list(self.kind.gates), constant.shape
        apart = (shape[0], len(order), self.hidden, *shape[2:])

        def compute() -> NDArray[np.generic]:
            return constant.array().reshape(apart)[:, order].reshape(shape)

        ordered = f"{name}.gates"
        recipe = ("gates", self.kind.gates)
        derived = Derived(DType.FLOAT32, shape, compute, (constant,), recipe)
        self.builder.add_constant(ordered, derived)
        return ordered

    def _bias(self, name: str) -> str:
        """The biases of the source and of the state in one, except where the reset is between."""
        order, hidden, directions = list(self.kind.gates), self.hidden, self.directions
        gates = len(order)
        count = gates + (self.kind.cell == "linear_gru")
        constant: Constant = self.builder.constant(name) or Fill(
            np.zeros((), np.float32), (directions, 2 * gates * hidden)
        )

        def compute() -> NDArray[np.float32]:
            whole = np.asarray(constant.array(), np.float32).reshape(directions, 2, gates, hidden)
            total = np.zeros((directions, count, hidden), np.float32)
            total[:, :gates] = whole[:, 0, order]
            if count > gates:
                total[:, : gates - 1] += whole[:, 1, : gates - 1]
                total[:, gates] = whole[:, 1, gates - 1]
            else:
                total += whole[:, 1, order]
            return total

        merged = f"{self.node.name}.bias"
        shape = (directions, count, hidden)
        recipe = ("bias", self.kind.cell)
        derived = Derived(DType.FLOAT32, shape, compute, (constant,), recipe)
        self.builder.add_constant(merged, derived)
        return merged


def _is_zero(builder: Builder, name: str) -> bool:
    constant = builder.constant(name)
    if constant is None or (
        not isinstance(constant, Fill) and element_count(constant.shape) > ZEROS_MAX
    ):
        return False
    return not np.any(constant.array())


RECURRENT = {("", operator): recurrent for operator in KINDS}
"""By domain and operator."""
