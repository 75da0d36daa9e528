"""Lengths that a file declares as text: a name, or an expression such as `past + 1`."""

import ast
import operator
from collections.abc import Callable, Mapping

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def names_in(dimension: str) -> frozenset[str]:
    """Return the names that a length is computed from: itself, unless it is an expression."""
    expression = _parsed(dimension)
    if expression is None:
        return frozenset({dimension})
    return frozenset(each.id for each in ast.walk(expression) if isinstance(each, ast.Name))


def evaluate(dimension: str, lengths: Mapping[str, int]) -> int | None:
    """Compute a length from the lengths of names; None if one is unknown, or by a division by 0.

    A text that is itself among `lengths` has that length.
    """
    if dimension in lengths:
        return lengths[dimension]
    expression = _parsed(dimension)
    try:
        return None if expression is None else _value(expression, lengths)
    except (KeyError, ZeroDivisionError):
        return None


def _parsed(dimension: str) -> ast.expr | None:
    """Return a sum, difference, product or quotient of names and numbers; None for a name.

    A difference has spaces round its sign: `batch-size` is a name.
    """
    if "-" in dimension.replace(" - ", ""):
        return None
    try:
        expression = ast.parse(dimension, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return expression if isinstance(expression, ast.BinOp) and _is_sum(expression) else None


def _is_sum(expression: ast.expr) -> bool:
    match expression:
        case ast.Constant(value=int()) | ast.Name():
            return True
        case ast.BinOp(left=left, op=op, right=right):
            return type(op) in _OPERATORS and _is_sum(left) and _is_sum(right)
    return False


def _value(expression: ast.expr, lengths: Mapping[str, int]) -> int:
    match expression:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return lengths[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, lengths), _value(right, lengths))
    raise AssertionError(expression)
