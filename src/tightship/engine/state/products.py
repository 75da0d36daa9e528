"""Rules of products over the past: MatMul, Attention, Einsum."""

from dataclasses import replace

import numpy as np

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.movement import scatter
from tightship.engine.state.rules import rule, zeroed
from tightship.engine.state.writer import Axes, Beyond, Extent
from tightship.graph import DType, Node

HEADS_FIRST = (0, 2, 1, 3)


@rule("MatMul")
def mat_mul(r: Rewriter, node: Node) -> None:
    left, right, target = *node.inputs[:2], node.outputs[0]
    ranks = len(r.shape_of(left)), len(r.shape_of(right))
    if min(ranks) < 2:
        raise r.refusal(node, "a vector that grows with the past")
    left, right = _contracted(r, (left, ranks[0] - 1), (right, ranks[1] - 2))
    r.keep(node, (left, right))
    axes: Axes = {}
    rank = len(r.shape(target))
    for axis, added in r.added(target).items():
        sides = [
            r.axes_of(name).get(axis - rank + own)
            for name, own, contracted in zip(node.inputs, ranks, (rank - 1, rank - 2), strict=True)
            if axis != contracted
        ]
        beyond = min((each.beyond for each in sides if each), default=Beyond.FINITE)
        axes[axis] = Extent(added, beyond)
    r.define(target, axes)


def _contracted(r: Rewriter, *operands: tuple[str, int]) -> list[str]:
    """Return the operands of a sum over an axis, with zeros where rows are not in use."""
    names = [name for name, _ in operands]
    extents = [r.axes_of(name).get(axis) for name, axis in operands]
    if not any(extents):
        return names
    found = [Beyond.ANY if extent is None else extent.beyond for extent in extents]
    if Beyond.ZERO not in found:
        names[0] = zeroed(r, *operands[0])
        found[0] = Beyond.ZERO
    for index, (name, axis) in enumerate(operands):
        if found[index] is Beyond.ANY:
            names[index] = zeroed(r, name, axis)
    return names


@rule("Einsum")
def einsum(r: Rewriter, node: Node) -> None:
    text = node.attributes["equation"]
    equation = (text.decode() if isinstance(text, bytes) else str(text)).replace(" ", "")
    terms, _, result = equation.partition("->")
    parts = terms.split(",")
    names = list(node.inputs)
    for letter in sorted({letter for part in parts for letter in part if letter not in result}):
        places = [i for i, part in enumerate(parts) if letter in part]
        operands = [(names[i], parts[i].index(letter)) for i in places]
        if not any(axis in r.axes_of(node.inputs[i]) for i, (_, axis) in
                   zip(places, operands, strict=True)):  # fmt: skip
            continue
        if len(places) != 2 or any(parts[i].count(letter) > 1 for i in places):
            raise r.refusal(node, f"a sum over `{letter}` that grows with the past")
        for i, name in zip(places, _contracted(r, *operands), strict=True):
            names[i] = name
    r.keep(node, names)
    target = node.outputs[0]
    r.define(target, {a: Extent(added, Beyond.FINITE) for a, added in r.added(target).items()})


@rule("Attention")
def attention(r: Rewriter, node: Node) -> None:
    """Attend to the rows in use: past rows get the new ones, and a mask says which count."""
    if not any(r.axes_of(name) for name in node.reads):
        r.keep(node)
        r.changing.update(node.writes)
        return
    query, key, value, mask, *past = (*node.inputs, *[""] * 7)[:6]
    query, key, value = (r.operand(name) for name in (query, key, value))
    if any(node.inputs[6:]) or any(node.outputs[3:]):
        raise r.refusal(node, "lengths of caches, or scores as an output")
    is_flat = len(r.shape_of(query)) == 3
    if is_flat:
        query = _apart(r, node, query, "q_num_heads")
        key, value = (_apart(r, node, name, "kv_num_heads") for name in (key, value))
    steps = r.writer.values[query].static_shape[2]
    if past[0]:
        added = r.axes_of(past[0])[2].added + steps
        key, value = (
            _joined(r, old, new, name)
            for old, new, name in zip(past, (key, value), (*node.outputs, "", "")[1:3], strict=True)
        )
    else:
        extent = r.axes_of(key).get(2)
        if extent is None or extent.beyond is Beyond.ANY:
            raise r.refusal(node, "keys that do not grow with the past, and a mask that does")
        added = extent.added
        if node.attributes.get("is_causal", 0):
            raise r.refusal(node, "causal rows that are not counted from the past")
    seen = _seen(r, node, added, steps)
    mask = _merged(r, r.operand(mask) if mask else "", seen)
    dropped = {"is_causal", "q_num_heads", "kv_num_heads"}
    attributes = {n: each for n, each in node.attributes.items() if n not in dropped}
    target, dtype = node.outputs[0], r.writer.values[query].dtype
    assert dtype is not None
    shape = (*r.writer.values[query].static_shape[:3], r.writer.values[value].static_shape[3])
    heads = r.writer.node(
        "Attention", (query, key, value, mask), dtype, shape, "" if is_flat else target,
        **attributes,
    )  # fmt: skip
    if is_flat:
        _together(r, heads, target)
    r.define(target, {})


def _joined(r: Rewriter, past: str, new: str, present: str) -> str:
    """Write the new rows behind the past ones, as the node's own output if it has one."""
    target = present or r.writer.names.new(f"{past}.all")
    extent = r.axes_of(past)[2]
    scatter(r, (past, new), target, 2, extent.added)
    rows = r.writer.values[new].static_shape[2]
    r.define(target, {2: replace(extent, added=extent.added + rows)})
    return target


def _seen(r: Rewriter, node: Node, added: int, steps: int) -> str:
    """Return which rows each query sees, as booleans of shape `[steps or 1, capacity]`."""
    left, right = (node.attributes.get(f"{s}_window_size", -1) for s in ("left", "right"))
    if left != -1 or right != -1:
        raise r.refusal(node, "windows")
    if not (node.attributes.get("is_causal", 0) and node.inputs[4:5]):
        return r.writer.in_use(added)
    capacity = r.followed.capacity
    places = r.writer.positions(added - steps, steps)
    column = r.writer.node(
        "Reshape", (places, r.writer.constant((steps, 1))), DType.INT64, (steps, 1)
    )
    rows = r.writer.constant(np.arange(capacity))
    return r.writer.node("LessOrEqual", (rows, column), DType.BOOL, (steps, capacity))


def _merged(r: Rewriter, mask: str, seen: str) -> str:
    """Return a mask with the rows that are not seen left out."""
    writer = r.writer
    shape = writer.values[seen].static_shape
    steps = shape[0] if len(shape) > 1 else 1
    if not mask:
        whole = (steps, r.followed.capacity)
        return writer.node("Reshape", (seen, writer.constant(whole)), DType.BOOL, whole)
    value = writer.values[mask]
    assert value.dtype is not None
    own = value.static_shape
    rank = max(len(own), 2)
    wide_own = (*(1,) * (rank - len(own)), *own)
    result = (*wide_own[:-2], max(wide_own[-2], steps), r.followed.capacity)
    if value.dtype is DType.BOOL:
        return writer.node("And", (mask, seen), DType.BOOL, result)
    least = writer.constant(-np.inf, value.dtype)
    return writer.node("Where", (seen, mask, least), value.dtype, result)


def _apart(r: Rewriter, node: Node, name: str, heads: str) -> str:
    """Divide `[batch, steps, heads * length]` into `[batch, heads, steps, length]`."""
    count = node.attributes[heads]
    assert isinstance(count, int)
    value = r.writer.values[name]
    assert value.dtype is not None
    batch, steps, wide = value.static_shape
    shape = (batch, steps, count, wide // count)
    four = r.writer.node("Reshape", (name, r.writer.constant(shape)), value.dtype, shape)
    return _transposed(r, four)


def _transposed(r: Rewriter, name: str) -> str:
    value = r.writer.values[name]
    assert value.dtype is not None
    shape = tuple(value.static_shape[axis] for axis in HEADS_FIRST)
    return r.writer.node("Transpose", (name,), value.dtype, shape, perm=HEADS_FIRST)


def _together(r: Rewriter, heads: str, target: str) -> None:
    name = _transposed(r, heads)
    value = r.writer.values[name]
    assert value.dtype is not None
    shape = r.shape(target)
    r.writer.node("Reshape", (name, r.writer.constant(shape)), value.dtype, shape, target)
