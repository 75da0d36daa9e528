"""Rewrites ONNX's Attention to our operator, which never stores scores whole.

Operands of rank three are split into heads, and past keys and values concatenated with the new
ones, by operators of their own. Soft caps, windows and the lengths of padded caches become parts of
our operator. Other features are left to the reference: scores as an output, a softmax in float64,
masks of fewer keys than there are.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, DType, Graph, Node, Value
from tightship.graph.attention_shapes import attention_misfit
from tightship.graph.ir import AttributeValue
from tightship.graph.symbolic import SymbolicConstant

Shape = tuple[int, ...]
HEADS_FIRST = (0, 2, 1, 3)
DOUBLE = 11
"""ONNX's number of float64, in which our kernels compute no softmax of float32."""


def spell_attention(graph: Graph) -> Graph:
    """Replace every Attention that is one softmax over all keys, with at most one mask."""
    writer = _Writer(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        is_one = node.operator == "Attention" and not node.domain and _is_covered(graph, node)
        nodes.extend(writer.spelled(node) if is_one else [node])
    if nodes == list(graph.nodes):
        return graph
    return rebuilt(graph, nodes, constants=writer.constants, values=writer.values)


def _is_covered(graph: Graph, node: Node) -> bool:
    query, key, value, mask, past, _, padded, _ = _operands(node)
    outputs = [*node.outputs, "", "", ""]
    values = [graph.value(name) for name in (*node.inputs, *node.outputs) if name]
    if outputs[3] or node.attributes.get("softmax_precision") == DOUBLE:
        return False
    if padded and (past or graph.value(padded).dtype is not DType.INT64):
        return False
    if not all(value.is_static and 0 not in value.static_shape for value in values):
        return False
    if any(graph.value(n).dtype is not DType.FLOAT32 for n in (query, key, value)) or not _fits(
        graph, node
    ):
        return False
    if not mask:
        return True
    keys = graph.value(key).static_shape[-2]
    keys += graph.value(past).static_shape[-2] if past else 0
    return graph.value(mask).dtype in (DType.FLOAT32, DType.BOOL) and (
        len(graph.value(mask).static_shape) >= 2 and graph.value(mask).static_shape[-1] == keys
    )


def _fits(graph: Graph, node: Node) -> bool:
    """Whether operands have the lengths that the native kernel derives from one another."""
    names = node.inputs[:7]
    shapes = [graph.value(name).shape if name else None for name in names]
    counts = [node.attributes.get(f"{side}_num_heads") for side in ("q", "kv")]
    heads = tuple(count if isinstance(count, int) else None for count in counts)
    return attention_misfit(names, shapes, (heads[0], heads[1])) is None


def _operands(node: Node) -> tuple[str, ...]:
    """Return the names of eight inputs, empty for those left out."""
    return (*node.inputs, *[""] * (8 - len(node.inputs)))


@dataclass(slots=True)
class _Writer:
    """New nodes with their constants and values."""

    graph: Graph
    constants: dict[str, Constant] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def spelled(self, node: Node) -> list[Node]:
        """Replace the node by its parts, in order."""
        self.nodes = []
        query, key, value, mask, *past, padded = _operands(node)[:7]
        target, *present = (*node.outputs, "", "")[:3]
        is_flat = len(self._shape(query)) == 3
        if is_flat:
            query = self._apart(query, node, "q_num_heads")
            key, value = (self._apart(each, node, "kv_num_heads") for each in (key, value))
        before = self._shape(past[0])[-2] if past[0] else 0
        key, value = (
            self._joined(old, new, whole, f"{target}.{part}")
            for old, new, whole, part in zip(
                past, (key, value), present, ("keys", "values"), strict=True
            )
        )
        inputs = query, key, value, *([mask, padded] if padded else [mask] if mask else [])
        attributes = self._attributes(node, query, mask, before)
        heads = f"{target}.heads" if is_flat else target
        self.nodes.append(Node(node.name, "Attention", inputs, (heads,), attributes, "tightship"))
        if is_flat:
            batch, count, steps, _ = self._shape(query)
            self._value(heads, (batch, count, steps, self._shape(value)[-1]))
            side = self._transposed(heads, f"{target}.side")
            self._reshaped(side, self._shape(target), target)
        return self.nodes

    def _attributes(
        self, node: Node, query: str, mask: str, before: int
    ) -> dict[str, AttributeValue]:
        scale = node.attributes.get("scale", 1 / math.sqrt(self._shape(query)[-1]))
        cap = node.attributes.get("softcap", 0.0)
        left, right = (node.attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
        assert isinstance(scale, float)
        assert isinstance(cap, float)
        assert isinstance(left, int)
        assert isinstance(right, int)
        kinds = {None: "none", DType.FLOAT32: "added", DType.BOOL: "kept"}
        return {
            "scale": scale,
            "keys_turned": 0,
            "mask": kinds[self.graph.value(mask).dtype if mask else None],
            "fill": -math.inf,
            "cap": max(cap, 0.0),
            "first": before,
            "ahead": 0 if node.attributes.get("is_causal", 0) else max(right, -1),
            "behind": max(left, -1),
            "zero_if_undefined": 0,
            "zero_if_unseen": 1,
        }

    def _apart(self, name: str, node: Node, heads: str) -> str:
        """Reshape and transpose [batch, steps, heads * length] to [batch, heads, steps, length]."""
        count = node.attributes[heads]
        assert isinstance(count, int)
        batch, steps, wide = self._shape(name)
        label = f"{node.outputs[0]}.{name}.{heads}"
        if f"{label}.first" in self.values:
            return f"{label}.first"
        four = (batch, steps, count, wide // count)
        self._value(f"{label}.apart", four)
        return self._transposed(self._reshaped(name, four, f"{label}.apart"), f"{label}.first")

    def _joined(self, past: str, new: str, present: str, name: str) -> str:
        """Concatenate past rows and new ones; without a past, the present equals the new rows."""
        if past:
            batch, heads, steps, length = self._shape(new)
            whole = present or self._value(
                name, (batch, heads, steps + self._shape(past)[2], length)
            )
            self.nodes.append(Node(whole, "Concat", (past, new), (whole,), {"axis": 2}, version=13))
            return whole
        if present:
            self.nodes.append(Node(present, "Identity", (new,), (present,), version=13))
        return new

    def _shape(self, name: str) -> Shape:
        value = self.values.get(name)
        return (value or self.graph.value(name)).static_shape

    def _value(self, name: str, shape: Shape) -> str:
        self.values[name] = Value(name, DType.FLOAT32, shape)
        return name

    def _transposed(self, name: str, target: str) -> str:
        shape = self._shape(name)
        self._value(target, tuple(shape[axis] for axis in HEADS_FIRST))
        self.nodes.append(
            Node(target, "Transpose", (name,), (target,), {"perm": HEADS_FIRST}, version=13)
        )
        return target

    def _reshaped(self, name: str, shape: Shape, target: str) -> str:
        sizes = f"{target}.shape"
        self.constants[sizes] = SymbolicConstant(DType.INT64, np.array(shape, object))
        self.nodes.append(
            Node(f"{target}.reshape", "Reshape", (name, sizes), (target,), version=13)
        )
        return target
