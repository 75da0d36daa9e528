"""Tape of gradient nodes being written: drafts, until each value has its final name."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tightship.graph.backward.operators import Attributes, Type
from tightship.graph.constant import Constant, Fill, Inline
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.layout import DType
from tightship.graph.new_names import NewNames

OPSET = 18
"""Opset of the ONNX operators in gradients."""
ONNX = ("", OPSET)
"""Domain and version of these operators."""

_Draft = tuple[str, tuple[str, ...], tuple[str, ...], Attributes, tuple[str, int]]
"""Operator, inputs, outputs, attributes, domain and version."""


class Tape:
    """Additions of a backward pass to a graph: nodes in order, types and constants.

    A forward node is extended by the optional outputs that a gradient reads. Values of the tape
    have draft names, which begin with a zero byte, until `nodes` is called. `types` caches the
    results of `type`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, Constant] = {}
        self.types: dict[str, Type] = {}
        self._written: dict[str, Type] = {}
        self._drafts: list[_Draft] = []
        self._final: dict[str, str] = {}
        self._saved: dict[str, dict[int, str]] = {}
        self._names = NewNames(graph)
        self._changed: dict[str, Node] = {}
        self._shared: dict[str, str] = {}

    def type(self, name: str) -> Type | None:
        """Return the element type and shape of a value of the graph or tape; None if not static."""
        found = self.types.get(name)
        if found is None:
            value = self.graph.value(name)
            if not value.is_static or value.dtype is None:
                return None
            found = self.types[name] = (value.dtype, value.static_shape)
        return found

    def constant(self, name: str) -> Constant | None:
        """Return the constant of a name; None if it is computed, or an input."""
        return self.constants.get(name) or self.graph.constant(name)

    def write(
        self,
        operator: str,
        inputs: Sequence[str],
        types: Sequence[Type | None],
        attributes: Attributes,
        source: tuple[str, int] = ONNX,
    ) -> tuple[str, ...]:
        """Add a node; return the draft names of its outputs, `""` where a type is None."""
        outputs = []
        for kind in types:
            name = "" if kind is None else f"\0{len(self.types)}"
            outputs.append(name)
            if kind is not None:
                self.types[name] = self._written[name] = kind
        made = tuple(outputs)
        self._drafts.append((operator, tuple(inputs), made, attributes, source))
        return made

    def call(self, name: str, wanted: str) -> None:
        """Give a value of the tape its final name, unless it has one."""
        if name[0] == "\0" and name not in self._final:
            self._final[name] = self._names.new(wanted)

    def define(self, wanted: str, kind: Type) -> str:
        """Name a value that no node of the tape writes: an input, a saved output."""
        name = self._names.new(wanted)
        self.types[name] = self._written[name] = kind
        return name

    def hold(self, wanted: str, constant: Constant) -> str:
        """Add a constant; return its name."""
        name = self.define(wanted, (constant.dtype, constant.shape))
        self.constants[name] = constant
        return name

    def number(self, number: float, dtype: DType) -> str:
        """Add a constant of rank 0."""
        return self._held(
            f"gradient {number!r} {dtype.value}", Inline(np.array(number, dtype.numpy))
        )

    def integers(self, numbers: Sequence[int]) -> str:
        """Add a constant vector of int64."""
        return self._held(f"gradient {tuple(numbers)}", Inline(np.array(numbers, np.int64)))

    def filled(self, number: float, dtype: DType, shape: tuple[int, ...]) -> str:
        """Add a constant of one repeated number."""
        fill = Fill(np.array(number, dtype.numpy), shape)
        return self._held(f"gradient {number!r} {dtype.value} {shape}", fill)

    def _held(self, wanted: str, constant: Constant) -> str:
        """Add a constant once; return its name."""
        if wanted not in self._shared:
            self._shared[wanted] = self.hold(wanted, constant)
        return self._shared[wanted]

    def save(self, node: Node, index: int, kind: Type) -> str:
        """Return the name of an optional output of a forward node, which is added if needed."""
        if index < len(node.outputs) and node.outputs[index]:
            return node.outputs[index]
        saved = self._saved.setdefault(node.writes[0], {})
        if index not in saved:
            saved[index] = self.define(f"{node.writes[0]}.saved{index}", kind)
        return saved[index]

    def change(self, node: Node, changed: Node) -> None:
        """Replace a forward node by another, which writes its values too."""
        self._changed[node.writes[0]] = changed

    def nodes(self) -> tuple[Node, ...]:
        """Return the forward nodes, extended by saved outputs, and the gradient nodes."""
        forward = self.graph.nodes
        if self._saved or self._changed:
            forward = tuple([self._as_it_is_now(node) for node in forward])
        return (*forward, *[self._node(*draft) for draft in self._drafts])

    def values(self) -> dict[str, Value]:
        """Return the types of all values by their final names; `nodes` must come first."""
        final = self._final
        added = {}
        for name, (dtype, shape) in self._written.items():
            called = final.get(name, name)
            added[called] = Value(called, dtype, shape)
        return {**self.graph.values, **added}

    def final(self, name: str) -> str:
        """Return the final name of a value."""
        return self._final.get(name, name)

    def _as_it_is_now(self, node: Node) -> Node:
        first = node.writes[0] if node.writes else ""
        if first in self._changed:
            return self._changed[first]
        saved = self._saved.get(first)
        if saved is None:
            return node
        count = max(len(node.outputs), max(saved) + 1)
        outputs = [*node.outputs, *[""] * (count - len(node.outputs))]
        for index, name in saved.items():
            outputs[index] = name
        return replace(node, outputs=tuple(outputs))

    def _node(
        self,
        operator: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        attributes: Attributes,
        source: tuple[str, int],
    ) -> Node:
        final = self._final
        read = tuple([final.get(name, name) for name in inputs])
        for name in outputs:
            if name and name not in final:
                final[name] = self._names.new(f"{read[0]}.{operator}")
        made = tuple([final.get(name, name) for name in outputs])
        label = made[0] or next(name for name in made if name)
        return Node(label, operator, read, made, attributes, *source)
