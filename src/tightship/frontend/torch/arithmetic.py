"""Evaluation of torch's expressions of lengths; symbolic lengths stay symbolic."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import sympy
from sympy.core import relational
from torch.utils._sympy import functions

Lengths = Mapping[sympy.Symbol, int]
Number = int | float | bool


def value_of(expression: sympy.Basic, lengths: Lengths) -> Number:
    """Evaluate an expression to a number, or to a symbolic length.

    Operations without length arithmetic are computed from the current numbers; that these are the
    lengths then becomes a condition.

    Args:
        expression: Expression or relation of lengths; all its symbols are in `lengths`.
        lengths: Lengths by symbol.
    """
    if isinstance(expression, sympy.Symbol):
        return lengths[expression]
    if isinstance(expression, sympy.Integer):
        return int(expression)
    operation = _OPERATIONS.get(expression.func)
    if operation is not None and _is_whole(expression):
        found: Number = operation([value_of(part, lengths) for part in expression.args])
        return found
    numbers = {symbol: int(lengths[symbol]) for symbol in expression.free_symbols}
    return number_of(expression.subs(numbers))


def number_of(found: sympy.Basic) -> Number:
    """Convert a value of sympy to a Python number."""
    if found in (sympy.true, sympy.false):
        return bool(found)
    return int(found) if found.is_Integer else float(found)


def _is_whole(expression: sympy.Basic) -> bool:
    """Whether its parts are integers, and an exponent a known one."""
    if isinstance(expression, sympy.Pow):
        exponent = expression.args[1]
        return bool(exponent.is_Integer and exponent > 0)
    return not any(isinstance(part, sympy.Number) and not part.is_Integer
                   for part in expression.args)  # fmt: skip


def _power(parts: Sequence[Any]) -> Any:  # noqa: ANN401
    return prod([parts[0]] * parts[1])


def _pairwise(operation: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda parts: reduce(operation, parts)


_OPERATIONS: Mapping[object, Callable[[Sequence[Any]], Any]] = {
    sympy.Add: _pairwise(operator.add),
    sympy.Mul: _pairwise(operator.mul),
    sympy.Pow: _power,
    functions.FloorDiv: _pairwise(operator.floordiv),
    functions.CleanDiv: _pairwise(operator.floordiv),
    functions.Mod: _pairwise(operator.mod),
    functions.PythonMod: _pairwise(operator.mod),
    functions.Max: max,
    functions.Min: min,
    sympy.Max: max,
    sympy.Min: min,
    relational.Equality: _pairwise(operator.eq),
    relational.Unequality: _pairwise(operator.ne),
    relational.StrictLessThan: _pairwise(operator.lt),
    relational.LessThan: _pairwise(operator.le),
    relational.StrictGreaterThan: _pairwise(operator.gt),
    relational.GreaterThan: _pairwise(operator.ge),
    sympy.And: all,
    sympy.Or: any,
    sympy.Not: lambda parts: not parts[0],
}
"""Functions by the class of an expression, for integers and symbolic lengths alike."""
