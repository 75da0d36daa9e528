"""Symbolic shape rules of matrix products, attention and recurrent layers."""

from functools import partial

from tightship.graph.operators.shapes.shape_context import (
    NoRuleError,
    Shape,
    ShapeContext,
    broadcast,
)


def matmul(context: ShapeContext, right_index: int = 1) -> list[Shape]:
    left, right = context.shape(0), context.shape(right_index)
    if len(left) < 2 or len(right) < 2 or left[-1] != right[-2]:
        raise NoRuleError
    return [(*broadcast(left[:-2], right[:-2]), left[-2], right[-1])]


def gemm(context: ShapeContext) -> list[Shape]:
    left, right = context.shape(0), context.shape(1)
    if context.integer("transA", 0):
        left = left[::-1]
    if context.integer("transB", 0):
        right = right[::-1]
    if left[1] != right[0]:
        raise NoRuleError
    return [(left[0], right[1])]


def einsum(context: ShapeContext) -> list[Shape]:
    """Require every axis to be named, and the result to be written out."""
    equation = context.node.attributes.get("equation", "")
    if isinstance(equation, bytes):
        equation = equation.decode()
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        raise NoRuleError
    terms, _, result = equation.replace(" ", "").partition("->")
    lengths: dict[str, int] = {}
    for index, term in enumerate(terms.split(",")):
        for letter, length in zip(term, context.shape(index), strict=True):
            if lengths.setdefault(letter, length) != length:
                raise NoRuleError
    return [tuple(lengths[letter] for letter in result)]


def recurrent(context: ShapeContext) -> list[Shape]:
    """Return the shape of the sequence, then those of the last states: one, or two of an LSTM."""
    shape, (directions, _, hidden) = context.shape(), context.shape(2)
    if context.integer("layout", 0):
        batch, steps = shape[:2]
        sequence, state = (batch, steps, directions, hidden), (batch, directions, hidden)
    else:
        steps, batch = shape[:2]
        sequence, state = (steps, directions, batch, hidden), (directions, batch, hidden)
    return [sequence, state, state][: 3 if context.node.operator == "LSTM" else 2]


def attention(context: ShapeContext) -> list[Shape]:
    if len(context.shape()) != 4 or len(context.node.writes) != 1:
        raise NoRuleError
    return [(*context.shape()[:3], context.shape(2)[3])]


q_linear_mat_mul = partial(matmul, right_index=3)
