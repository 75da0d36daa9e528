"""Batch axes of products and of recurrent networks."""

from collections.abc import Sequence

from tightship.graph.batch_axis.step import Rules, Step


def _matmul(at: Step) -> tuple[int | None, ...]:
    left, right = at.axes[0], at.axes[1]
    ranks = [len(at.shape(index)) for index in (0, 1)]
    rank = max(*ranks, 2)
    if min(ranks) < 2:
        at.refuse("multiplies a vector")
    found = {
        axis + rank - of for axis, of in zip((left, right), ranks, strict=True) if axis is not None
    }
    if len(found) > 1:
        at.refuse("multiplies samples that lie along different axes")
    (position,) = found
    if position >= rank - 2:
        summed = rank - 1 if left is not None else rank - 2
        if position == summed or (left is not None and right is not None):
            at.refuse("sums over the batch")
        return (position,)
    for index, axis in enumerate((left, right)):
        place = position - (rank - ranks[index])
        if axis is None and place >= 0 and at.shape(index)[place] != 1:
            at.repeat(index, place)
    return (position,)


def _gemm(at: Step) -> tuple[int | None, ...]:
    at.alone(0, 2)
    if at.main != (1 if at.node.integer("transA", 0) else 0):
        at.refuse("sums over the batch")
    if len(at.axes) > 2 and at.node.inputs[2]:
        shape = at.shape(2)
        if at.axes[2] is None and len(shape) == 2 and shape[0] != 1:
            at.repeat(2, 0)
        elif at.axes[2] not in (None, 0):
            at.refuse("adds samples that lie along another axis")
    return (0,)


def _einsum(at: Step) -> tuple[int | None, ...]:
    equation = at.node.attributes["equation"]
    assert isinstance(equation, str | bytes)
    text = (equation if isinstance(equation, str) else equation.decode()).replace(" ", "")
    if "." in text or "->" not in text:
        at.refuse("has an equation with an ellipsis or without a result")
    terms, result = text.split("->")
    letters = terms.split(",")
    found = {term[axis] for term, axis in zip(letters, at.axes, strict=True) if axis is not None}
    if len(found) > 1 or not found <= set(result):
        at.refuse("sums over the batch")
    (letter,) = found
    for index, term in enumerate(letters):
        if at.axes[index] is None and letter in term:
            at.repeat(index, term.index(letter))
    return (result.index(letter),)


def _recurrent(at: Step) -> tuple[int | None, ...]:
    if at.node.integer("layout", 0):
        at.refuse("has the layout 1")
    if at.main != 1:
        at.refuse(
            f"has its samples along axis {at.main}; a recurrent network has them along axis 1"
        )
    for index, axis in ((4, 0), (5, 1), (6, 1)):
        if index < len(at.node.inputs) and at.node.inputs[index]:
            if at.axes[index] is None:
                at.repeat(index, axis)
            elif at.axes[index] != axis:
                at.refuse(f"has samples along another axis in input {index}")
    return (2, 1, 1)


def heads(at: Step) -> tuple[int | None, ...]:
    """Follow attention: queries, keys and values have samples outside, masks may have none."""
    for index, name in enumerate(at.node.inputs):
        if not name:
            continue
        axis = at.axes[index]
        if axis not in (None, 0):
            at.refuse(f"has samples along axis {axis} of input {index}")
        if axis is None and index < 3:
            at.refuse(f"has no samples in input {index}")
        if axis is None and _leading(at.shape(index), at.result) not in (1, None):
            at.repeat(index, 0)
    return (0,)


def _leading(shape: Sequence[int], result: Sequence[int]) -> int | None:
    """Return the length of a mask along the batch; None if it has no such axis."""
    return shape[0] if len(shape) == 4 or len(shape) > len(result) else None


RULES: Rules = {
    "Attention": heads,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "RNN": _recurrent,
}
