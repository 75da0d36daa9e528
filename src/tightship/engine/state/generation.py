"""Rules of operators that make values from lengths, and writing of inputs that follow from them."""

import numpy as np

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.following_input import FollowingInput, Meaning
from tightship.engine.state.rules import rule
from tightship.engine.state.writer import Beyond, Extent
from tightship.graph import DType, Fill, Inline, Node, Value

CAST_NUMBERS = {
    DType.FLOAT32: 1, DType.INT32: 6, DType.INT64: 7, DType.BOOL: 9, DType.FLOAT16: 10,
    DType.BFLOAT16: 16,
}  # fmt: skip


@rule("Range")
def range_rule(r: Rewriter, node: Node) -> None:
    target = node.outputs[0]
    start, limit, delta = (r.elements(node, index) for index in range(3))
    assert start is not None
    assert limit is not None
    (a, first), (b, last) = start[0], limit[0]
    if delta != ((0, 1),) or (a, b) not in ((1, 1), (0, 1)):
        raise r.refusal(node, "a range that is not up to the number of rows")
    dtype = r.followed.graph.value(target).dtype
    assert dtype is not None
    if a:
        count = last - first
        _cast(r, r.writer.positions(first, count), dtype, (count,), target)
        r.define(target, {})
        r.indices.add(target)
        return
    numbers = np.arange(first, first + r.followed.capacity)
    r.writer.constants[target] = Inline(numbers.astype(dtype.numpy))
    r.writer.values[target] = Value(target, dtype, numbers.shape)
    r.define(target, {0: Extent(last - first, Beyond.FINITE)})
    if first >= 0:
        r.indices.add(target)


@rule("ConstantOfShape")
def constant_of_shape(r: Rewriter, node: Node) -> None:
    target = node.outputs[0]
    filling = node.attributes.get("value")
    number = filling.array() if isinstance(filling, Inline) else np.zeros((), np.float32)
    shape = r.shape(target)
    r.writer.constants[target] = Fill(number.reshape(()), shape)
    r.writer.values[target] = Value(target, DType.of(number.dtype), shape)
    beyond = Beyond.FINITE if np.any(number) else Beyond.ZERO
    grown = r.added(target)
    r.define(target, {axis: Extent(added, beyond) for axis, added in grown.items()})
    if len(shape) == 2 and grown.keys() == {1} and np.all(number == 1):
        r.masks[target] = grown[1]  # an export without a mask among its inputs makes one


def _cast(r: Rewriter, name: str, dtype: DType, shape: tuple[int, ...], target: str) -> None:
    operator = "Identity" if r.writer.values[name].dtype is dtype else "Cast"
    attributes = {} if operator == "Identity" else {"to": CAST_NUMBERS[dtype]}
    r.writer.node(operator, (name,), dtype, shape, target, **attributes)


def _write_mask(r: Rewriter, name: str) -> None:
    """Write a mask `[batch, rows]` of ones for the rows in use."""
    value = r.followed.graph.value(name)
    assert value.dtype is not None
    shape = (value.static_shape[0], r.followed.capacity)
    seen = r.writer.in_use(r.followed.steps)
    inputs = seen, r.writer.constant(shape)
    wide = r.writer.node("Expand", inputs, DType.BOOL, shape)
    _cast(r, wide, value.dtype, shape, name)
    extended = {axis: Extent(added, Beyond.ZERO) for axis, added in r.added(name).items()}
    r.define(name, extended)
    r.masks[name] = r.followed.steps


def _write_positions(r: Rewriter, name: str) -> None:
    """Write the positions of the new rows, `[..., steps]`."""
    value = r.followed.graph.value(name)
    assert value.dtype is not None
    shape, steps = value.static_shape, r.followed.steps
    inputs = r.writer.positions(0, steps), r.writer.constant(shape)
    wide = r.writer.node("Expand", inputs, DType.INT64, shape)
    _cast(r, wide, value.dtype, shape, name)
    r.define(name, {})
    r.indices.add(name)


def write_following(r: Rewriter, name: str, given: FollowingInput) -> None:
    """Write an input of the file that follows from the past length."""
    if given.meaning is Meaning.ROWS_IN_USE:
        _write_mask(r, name)
    elif given.meaning is Meaning.NEW_POSITIONS:
        _write_positions(r, name)
    else:
        added = given.added(r.followed.steps)
        write_count(r, name, added)
        r.counts[name] = added


def write_count(r: Rewriter, name: str, added: int) -> None:
    """Write the past length plus a number to every element of a value of the file."""
    value = r.followed.graph.value(name)
    assert value.dtype is not None
    rows = r.writer.past_plus(added)
    operator = "Expand" if value.static_shape else "Reshape"
    inputs = rows, r.writer.constant(value.static_shape)
    wide = r.writer.node(operator, inputs, DType.INT64, value.static_shape)
    _cast(r, wide, value.dtype, value.static_shape, name)
    r.define(name, {})
