"""Splits LSTM, GRU and RNN into one product of all inputs, and the steps.

`tightship.LSTM` and the like take, for each step and row, the inputs' contribution to every gate
with biases added; then the weights of the state, the bias that a GRU adds before it resets,
lengths, initial states and peepholes. Attributes are ONNX's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tightship.engine.kernels.recurrent_cell import named_activations
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.engine.lower.passes.whole_weights import whole_weights
from tightship.graph import (
    Constant,
    Derived,
    DType,
    Fill,
    Graph,
    Inline,
    Node,
    element_count,
)
from tightship.graph.constant import Array
from tightship.graph.layer import TRAINING
from tightship.graph.recurrent_shapes import DIRECTIONS, GATES, agree, recurrent_shapes

Floats = NDArray[np.float32]
Compute = Callable[[], Array]

DOMAIN = "tightship"


@dataclass(frozen=True, slots=True)
class Layer:
    """Number of gates, in ONNX's order, and default activations of an operator."""

    gates: int
    activations: tuple[str, ...]


LAYERS: Mapping[str, Layer] = {
    "GRU": Layer(GATES["GRU"], ("sigmoid", "tanh")),
    "LSTM": Layer(GATES["LSTM"], ("sigmoid", "tanh", "tanh")),
    "RNN": Layer(GATES["RNN"], ("tanh",)),
}
UNSERVED = frozenset({"softplus"})
"""Activations that the native cells lack."""
LENGTHS, STATE, CELL, PEEPHOLE = 4, 5, 6, 7
ZEROS_MAX = 1 << 16
"""Most elements of an initial state that are checked for all being zero."""


def split_recurrent(graph: Graph) -> Graph:
    """Split every layer whose activations the native cells have."""
    writer = _Writer(graph)
    for node in graph.nodes:
        if _fits(graph, node):
            writer.split(node)
        else:
            writer.nodes.append(node)
    return writer.written()


def activations_of(node: Node) -> list[tuple[str, float, float]] | None:
    """Return name, alpha and beta of each direction's activations; None if one is unserved."""
    directions = DIRECTIONS[str(node.attributes.get("direction", "forward"))]
    found = named_activations(node, LAYERS[node.operator].activations * directions)
    return None if found is None or UNSERVED & {name for name, _, _ in found} else found


def _fits(graph: Graph, node: Node) -> bool:
    if node.operator not in LAYERS or node.domain or node.fused:
        return False
    lengths = node.inputs[LENGTHS : LENGTHS + 1]
    values = [graph.value(name) for name in (*node.reads, *node.writes)]
    parameters = [*node.inputs[1:LENGTHS], *node.inputs[PEEPHOLE:]]
    are_computed = not graph.constants.keys() & set(node.inputs[1:3])
    return (
        all(value.is_static and 0 not in value.static_shape for value in values)
        and all(value.dtype is DType.FLOAT32 for value in values if value.name not in lengths)
        and (
            all(name in graph.constants for name in parameters if name)
            or (are_computed and not any(node.inputs[PEEPHOLE:]))
        )
        and len(graph.value(node.inputs[0]).static_shape) == 3
        and node.attributes.get("direction", "forward") in DIRECTIONS
        and activations_of(node) is not None
        and _agrees(graph, node)
    )


def _agrees(graph: Graph, node: Node) -> bool:
    """Whether the operands have the lengths that the native kernel derives from the weights."""
    x, _, r = (graph.value(name).static_shape for name in node.inputs[:3])
    if len(r) != 3:
        return False
    directions = DIRECTIONS[str(node.attributes.get("direction", "forward"))]
    by_batch = bool(node.attributes.get("layout", 0))
    wanted = recurrent_shapes(node.operator, directions, x, r[2], by_batch=by_batch)
    return all(
        agree(graph.value(name).static_shape, shape)
        for names, shapes in ((node.inputs, wanted.inputs), (node.outputs, wanted.outputs))
        for name, shape in zip(names, shapes, strict=False)
        if name
    )


@dataclass(slots=True)
class _Writer(GraphWriter):
    """Writes products and steps of layers."""

    def split(self, node: Node) -> None:
        """Write the product of the inputs, with biases added if there are any, and the steps.

        Weights that are not constant, such as trained ones, are read in their own layout.
        """
        inputs = (*node.inputs, *[""] * (PEEPHOLE + 1 - len(node.inputs)))
        x, w, r, bias = inputs[:4]
        directions, rows, width = self.shape(w)
        shape = (*self.shape(x)[:2], directions * rows)
        given = self.declare(f"{node.name}.product", shape)
        if w in self.graph.constants:
            self.add("MatMul", (x, self._columns(w)), given)
        else:
            flat = self._reshaped(w, f"{node.name}.flat", (directions * rows, width))
            self.add("TransposedMatMul", (x, flat), given, {"transB": 1}, domain=TRAINING)
        reset = ""
        if bias:
            is_constant = bias in self.graph.constants
            row, reset = (self._biases if is_constant else self._computed_biases)(node, bias)
            given = self.add("Add", (given, row), self.declare(f"{node.name}.gates", shape))
        states = ["" if self._is_zero(name) else name for name in inputs[STATE:PEEPHOLE]]
        steps = (given, r, reset, inputs[LENGTHS], *states, inputs[PEEPHOLE])
        self.nodes.append(replace(node, inputs=steps, domain=DOMAIN))

    def _columns(self, name: str) -> str:
        """Add the weights of the inputs as one matrix with a column for each unit of a gate."""
        constant = self.graph.constants[name]
        directions, rows, width = constant.shape
        whole = whole_weights(constant)
        if whole is not None:
            column = f"{name}.columns"
            self.constants[column] = Derived(
                DType.FLOAT32, (width, directions * rows), whole.columns, whole.parts,
                ("recurrent", "columns of integers"),
            )  # fmt: skip
            return column

        def compute() -> Array:
            return np.ascontiguousarray(constant.array().reshape(-1, width).T)

        shape = (width, directions * rows)
        return self._derived(f"{name}.columns", shape, compute, constant)

    def _biases(self, node: Node, name: str) -> tuple[str, str]:
        """Add the row for the product, and what a linear GRU adds before it resets."""
        constant = self.graph.constants[name]
        gates = LAYERS[node.operator].gates
        directions, hidden = constant.shape[0], constant.shape[1] // (2 * gates)
        is_linear = node.operator == "GRU" and bool(node.attributes.get("linear_before_reset", 0))
        kept = gates - 1 if is_linear else gates

        def apart() -> Floats:
            array = np.asarray(constant.array(), np.float32)
            return array.reshape(directions, 2, gates, hidden)

        def row() -> Floats:
            both = apart()
            total = both[:, 0].copy()
            total[:, :kept] += both[:, 1, :kept]
            return total.reshape(-1)

        added = self._derived(
            f"{node.name}.bias", (directions * gates * hidden,), row, constant, kept
        )
        if not is_linear:
            return added, ""
        return added, self._derived(
            f"{node.name}.reset", (directions, hidden),
            lambda: np.ascontiguousarray(apart()[:, 1, kept]), constant,
        )  # fmt: skip

    def _computed_biases(self, node: Node, name: str) -> tuple[str, str]:
        """Compute what `_biases` adds from a bias that is not constant."""
        directions, count = self.shape(name)
        gates = LAYERS[node.operator].gates
        hidden, stem = count // (2 * gates), f"{node.name}.bias"
        halves = self._reshaped(name, f"{stem}.halves", (directions, 2, gates, hidden))
        kept, reset = halves, ""
        if node.operator == "GRU" and node.attributes.get("linear_before_reset", 0):
            mask = np.ones((2, gates, 1), np.float32)
            mask[1, -1] = 0
            self.constants[f"{stem}.mask"] = Inline(mask)
            kept = self.declare(f"{stem}.kept", (directions, 2, gates, hidden))
            self.add("Mul", (halves, f"{stem}.mask"), kept)
            last = self.declare(f"{stem}.last", (directions, 1, 1, hidden))
            ends = [
                self.integers(f"{last}.{index}", numbers)
                for index, numbers in enumerate(((1, gates - 1), (2, gates), (1, 2)))
            ]
            self.add("Slice", (halves, *ends), last)
            reset = self._reshaped(last, f"{stem}.reset", (directions, hidden))
        total = self.declare(f"{stem}.total", (directions, gates, hidden))
        self.add("ReduceSum", (kept, self.integers(f"{total}.axes", (1,))), total, {"keepdims": 0})
        return self._reshaped(total, f"{stem}.row", (directions * gates * hidden,)), reset

    def _reshaped(self, name: str, target: str, shape: tuple[int, ...]) -> str:
        sizes = self.integers(f"{target}.shape", shape)
        return self.add("Reshape", (name, sizes), self.declare(target, shape))

    def _derived(
        self, name: str, shape: tuple[int, ...], compute: Compute, source: Constant, form: int = 0
    ) -> str:
        recipe = ("recurrent", name.rpartition(".")[2], form)
        self.constants[name] = Derived(DType.FLOAT32, shape, compute, (source,), recipe)
        return name

    def _is_zero(self, name: str) -> bool:
        constant = self.graph.constants.get(name)
        if isinstance(constant, Fill):
            return not np.any(constant.value)
        return not name or (
            constant is not None
            and element_count(constant.shape) <= ZEROS_MAX
            and not np.any(constant.array())
        )
