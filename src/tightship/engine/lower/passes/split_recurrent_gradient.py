"""Splits gradients of LSTM, GRU and RNN into products over all times, and the backward steps.

`tightship.LSTMGrad` and the like take, for one direction, the contributions of inputs and states to
the gates, the weights of the state, and what else `BACK_READ` names; they return the gradients of
the gates. Sums over times are single products: of gates and inputs, of gates and states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.engine.lower.passes.rewrite import OPSET, GraphWriter
from tightship.engine.lower.passes.split_recurrent import DOMAIN, LAYERS
from tightship.graph import AttributeValue, DType, Fill, Graph, Node
from tightship.graph.layer import TRAINING
from tightship.graph.recurrent_shapes import DIRECTIONS

GRADIENTS = {f"{name}Grad": name for name in LAYERS}
BACK_READ = (
    "gates", "shares", "weights", "bias", "states", "first_cell", "gradient", "last_gradient",
    "last_cell_gradient",
)  # fmt: skip
"""Inputs of the steps; each cell leaves out those that it does not need."""
BACK_WRITTEN = ("input_gates", "state_gates", "first_gradient", "first_cell_gradient")
_X, _W, _R, _B, _H, _C, _Y, _DY, _DY_H, _DY_C = range(10)
Shape = tuple[int, ...]


def split_recurrent_gradient(graph: Graph) -> Graph:
    """Split every gradient that native cells have; a GRU must reset the product of its state."""
    writer = GraphWriter(graph)
    for node in graph.nodes:
        if _fits(graph, node):
            _Splitting(writer, node).split()
        else:
            writer.nodes.append(node)
    return writer.written()


def _fits(graph: Graph, node: Node) -> bool:
    if node.operator not in GRADIENTS or node.domain != TRAINING or node.fused:
        return False
    found = [graph.value(name) for name in (*node.reads, *node.writes)]
    is_late = bool(node.attributes.get("linear_before_reset", 0))
    return (
        all(value.is_static and 0 not in value.static_shape for value in found)
        and all(value.dtype is DType.FLOAT32 for value in found)
        and (node.operator != "GRUGrad" or is_late)
    )


def _input(node: Node, place: int) -> str:
    return node.inputs[place] if place < len(node.inputs) else ""


@dataclass(slots=True)
class _Splitting:
    """Decomposition of one gradient."""

    writer: GraphWriter
    node: Node
    count: int = 0

    def split(self) -> None:
        """Split each direction; gradients of inputs are added, those of weights concatenated."""
        direction = str(self.node.attributes.get("direction", "forward"))
        count = DIRECTIONS[direction]
        outputs = (*self.node.outputs, *[""] * (_C + 1 - len(self.node.outputs)))
        found = [
            self._of_direction(index, outputs, is_reversed=index == 1 or direction == "reverse")
            for index in range(count)
        ]
        for place, name in enumerate(outputs):
            if name and place == _X:
                self._result("Add" if count > 1 else "Identity", [each[place] for each in found],
                             name)  # fmt: skip
            elif name:
                one = (1, *self.writer.shape(name)[1:])
                parts = [self._reshaped(each[place], one) for each in found]
                self._result("Concat" if count > 1 else "Identity", parts, name, {"axis": 0})

    def _of_direction(self, index: int, outputs: Sequence[str], *, is_reversed: bool) -> list[str]:
        """Return gradients of the first six inputs; an empty name for outputs left out."""
        x, given = self._flat(self.node.inputs[_X]), {
            place: self._part(place, index) for place in range(_W, _DY_C + 1)
        }  # fmt: skip
        before = self._before(given, is_reversed=is_reversed)
        back = self._back(x, before, given, outputs, is_reversed=is_reversed)
        gates = back["input_gates"]
        last = back.get("state_gates", gates)
        found = [""] * 6
        if outputs[_X]:
            flat = self._add("MatMul", (gates, given[_W]), self.writer.shape(x))
            found[_X] = self._reshaped(flat, self.writer.shape(outputs[_X]))
        if outputs[_W]:
            found[_W] = self._across(gates, x)
        if outputs[_R]:
            found[_R] = self._across(last, before)
        if outputs[_B]:
            sums = [self._sum(gates)]
            sums.append(sums[0] if last == gates else self._sum(last))
            size = self.writer.shape(sums[0])[0]
            found[_B] = self._add("Concat", tuple(sums), (2 * size,), {"axis": 0})
        found[_H] = back.get("first_gradient", "")
        found[_C] = back.get("first_cell_gradient", "")
        return found

    def _back(
        self,
        x: str,
        before: str,
        given: Mapping[int, str],
        outputs: Sequence[str],
        *,
        is_reversed: bool,
    ) -> dict[str, str]:
        """Add the backward steps; return their outputs by `BACK_WRITTEN`."""
        operator, is_plain = self.node.operator, self.node.operator == "RNNGrad"
        parts = {
            "weights": given[_R], "first_cell": given[_C], "gradient": given[_DY],
            "last_gradient": given[_DY_H], "last_cell_gradient": given[_DY_C],
        }  # fmt: skip
        if not is_plain:
            gates, shares = self._turned(x, given[_W]), self._turned(before, given[_R])
            parts |= {"gates": gates, "shares": shares, "bias": given[_B]}
        if operator != "LSTMGrad":
            parts["states"] = given[_Y] if is_plain else before
        size, hidden = self.writer.shape(given[_R])
        times, batch, _ = self.writer.shape(self.node.inputs[_X])
        written = {"input_gates": self._new((times * batch, size))}
        if operator == "GRUGrad":
            written["state_gates"] = self._new((times * batch, size))
        for part, place in (("first_gradient", _H), ("first_cell_gradient", _C)):
            if outputs[place]:
                written[part] = self._new((batch, hidden))
        names = self.node.attributes.get("activations", ())
        assert isinstance(names, tuple)
        attributes = {
            "is_reversed": int(is_reversed), "is_cut": int("Relu" in names), "times": times,
        }  # fmt: skip
        self._node(
            operator,
            tuple(parts.get(part, "") for part in BACK_READ),
            tuple(written.get(part, "") for part in BACK_WRITTEN),
            attributes,
            DOMAIN,
        )
        return written

    def _before(self, given: Mapping[int, str], *, is_reversed: bool) -> str:
        """Return the states before each step: the first state, then those after earlier steps."""
        states, first = given[_Y], given[_H] or self._zeros()
        rows, batch = self.writer.shape(states)[0], self.writer.shape(first)[0]
        if rows == batch:
            return first
        start = batch if is_reversed else 0
        others = self._rows(states, start, start + rows - batch)
        parts = (others, first) if is_reversed else (first, others)
        return self._add("Concat", parts, self.writer.shape(states), {"axis": 0})

    def _zeros(self) -> str:
        _, _, batch, hidden = self.writer.shape(self.node.inputs[_Y])
        name = self.writer.declare(f"{self.node.name}.zeros", (batch, hidden))
        self.writer.constants[name] = Fill(np.array(0, np.float32), (batch, hidden))
        return name

    def _part(self, place: int, index: int) -> str:
        """Return a direction's part of an input, without that axis."""
        name = _input(self.node, place)
        if not name:
            return ""
        shape, axis = self.writer.shape(name), 1 if place in (_Y, _DY) else 0
        if shape[axis] > 1:
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
            name = self._slice(name, axis, (index, index + 1), shape)
        if axis:
            return self._reshaped(name, (shape[0] * shape[2], shape[3]))
        return self._reshaped(name, shape[1:])

    def _flat(self, name: str) -> str:
        shape = self.writer.shape(name)
        return self._reshaped(name, (shape[0] * shape[1], shape[2]))

    def _turned(self, rows: str, weights: str) -> str:
        """Multiply rows by weights that have a row for each result."""
        shape = (self.writer.shape(rows)[0], self.writer.shape(weights)[0])
        return self._add("TransposedMatMul", (rows, weights), shape, {"transB": 1}, TRAINING)

    def _across(self, left: str, right: str) -> str:
        """Multiply columns, summed over all rows."""
        shape = (self.writer.shape(left)[1], self.writer.shape(right)[1])
        return self._add("TransposedMatMul", (left, right), shape, {"transA": 1}, TRAINING)

    def _sum(self, rows: str) -> str:
        axes = self._integers((0,))
        return self._add("ReduceSum", (rows, axes), self.writer.shape(rows)[1:], {"keepdims": 0})

    def _rows(self, name: str, start: int, stop: int) -> str:
        return self._slice(name, 0, (start, stop), (stop - start, self.writer.shape(name)[1]))

    def _slice(self, name: str, axis: int, ends: tuple[int, int], shape: Shape) -> str:
        where = [self._integers((number,)) for number in (*ends, axis)]
        return self._add("Slice", (name, *where), shape)

    def _reshaped(self, name: str, shape: Shape) -> str:
        return self._add("Reshape", (name, self._integers(shape)), shape)

    def _result(
        self, operator: str, names: Sequence[str], output: str,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> None:  # fmt: skip
        is_one = operator == "Identity"
        self._node(operator, tuple(names), (output,), {} if is_one else attributes or {})

    def _add(
        self, operator: str, inputs: tuple[str, ...], shape: Shape,
        attributes: Mapping[str, AttributeValue] | None = None, domain: str = "",
    ) -> str:  # fmt: skip
        output = self._new(shape)
        self._node(operator, inputs, (output,), attributes or {}, domain)
        return output

    def _node(
        self, operator: str, inputs: tuple[str, ...], outputs: tuple[str, ...],
        attributes: Mapping[str, AttributeValue], domain: str = "",
    ) -> None:  # fmt: skip
        name = f"{self.node.name}.{self.count}"
        self.count += 1
        node = Node(name, operator, inputs, outputs, attributes, domain, OPSET)
        self.writer.nodes.append(node)

    def _new(self, shape: Shape) -> str:
        return self.writer.declare(f"{self.node.name}.value.{len(self.writer.values)}", shape)

    def _integers(self, numbers: Shape) -> str:
        name = f"{self.node.name}.numbers.{len(self.writer.constants)}"
        return self.writer.integers(name, numbers)
