"""Rewrites ONNX's Attention to our operator, which never stores scores whole.

Operands of rank three are split into heads, and past keys and values concatenated with the new
ones, by operators of their own. Soft caps, windows and the lengths of padded caches become parts of
our operator. Other features are left to the reference: scores as an output, a softmax in float64,
masks of fewer keys than there are.
"""

import math
from dataclasses import dataclass

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType, Graph, Node
from tightship.graph.attention_shapes import attention_misfit
from tightship.graph.ir import AttributeValue

Shape = tuple[int, ...]
HEADS_FIRST = (0, 2, 1, 3)
DOUBLE = 11
"""ONNX's number of float64, in which our kernels compute no softmax of float32."""


def spell_attention(graph: Graph) -> Graph:
    """Replace every Attention that is one softmax over all keys, with at most one mask."""
    writer = _Writer(graph)
    for node in graph.nodes:
        if node.operator == "Attention" and not node.domain and _is_covered(graph, node):
            writer.spell(node)
        else:
            writer.nodes.append(node)
    return writer.written()


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
class _Writer(GraphWriter):
    """Writes the parts of attention."""

    def spell(self, node: Node) -> None:
        """Write the parts of a node, in order."""
        query, key, value, mask, *past, padded = _operands(node)[:7]
        target, *present = (*node.outputs, "", "")[:3]
        is_flat = len(self.shape(query)) == 3
        if is_flat:
            query = self._apart(query, node, "q_num_heads")
            key, value = (self._apart(each, node, "kv_num_heads") for each in (key, value))
        before = self.shape(past[0])[-2] if past[0] else 0
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
            batch, count, steps, _ = self.shape(query)
            self.declare(heads, (batch, count, steps, self.shape(value)[-1]))
            side = self._transposed(heads, f"{target}.side")
            self._reshaped(side, self.shape(target), target)

    def _attributes(
        self, node: Node, query: str, mask: str, before: int
    ) -> dict[str, AttributeValue]:
        left, right = (node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
        kinds = {None: "none", DType.FLOAT32: "added", DType.BOOL: "kept"}
        return {
            "scale": node.number("scale", 1 / math.sqrt(self.shape(query)[-1])),
            "keys_turned": 0,
            "mask": kinds[self.graph.value(mask).dtype if mask else None],
            "fill": -math.inf,
            "cap": max(node.number("softcap", 0.0), 0.0),
            "first": before,
            "ahead": 0 if node.attributes.get("is_causal", 0) else max(right, -1),
            "behind": max(left, -1),
            "zero_if_undefined": 0,
            "zero_if_unseen": 1,
        }

    def _apart(self, name: str, node: Node, heads: str) -> str:
        """Reshape and transpose [batch, steps, heads * length] to [batch, heads, steps, length]."""
        count = node.integer(heads)
        batch, steps, wide = self.shape(name)
        label = f"{node.outputs[0]}.{name}.{heads}"
        if f"{label}.first" in self.values:
            return f"{label}.first"
        four = (batch, steps, count, wide // count)
        self.declare(f"{label}.apart", four)
        return self._transposed(self._reshaped(name, four, f"{label}.apart"), f"{label}.first")

    def _joined(self, past: str, new: str, present: str, name: str) -> str:
        """Concatenate past rows and new ones; without a past, the present equals the new rows."""
        if past:
            batch, heads, steps, length = self.shape(new)
            shape = (batch, heads, steps + self.shape(past)[2], length)
            return self.add(
                "Concat", (past, new), present or self.declare(name, shape), {"axis": 2}
            )
        if present:
            self.add("Identity", (new,), present)
        return new

    def _transposed(self, name: str, target: str) -> str:
        shape = self.shape(name)
        self.declare(target, tuple(shape[axis] for axis in HEADS_FIRST))
        return self.add("Transpose", (name,), target, {"perm": HEADS_FIRST})

    def _reshaped(self, name: str, shape: Shape, target: str) -> str:
        return self.reshape(name, shape, target, name=f"{target}.reshape")
