"""Elementwise primitives."""

from collections.abc import Callable
from functools import partial

import numpy as np

from tightship.frontend.jax.call import Call
from tightship.frontend.same_names import UNARY
from tightship.frontend.writer import Operand
from tightship.graph import DType

_FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)


def same(call: Call) -> Operand:
    """Return the operand itself."""
    return call.operand


def plain(operator: str, call: Call) -> Operand:
    """Translate to one operator of all operands."""
    return call.elementwise(operator, *call.operands)


def by_type(of_numbers: str, of_booleans: str, call: Call) -> Operand:
    """Translate to an operator that has another name for booleans."""
    return plain(of_booleans if call.operand.dtype is DType.BOOL else of_numbers, call)


def greatest(call: Call) -> Operand:
    """Translate the maximum; Relu if one operand is 0."""
    left, right = call.operands
    for one, other in ((left, right), (right, left)):
        if call.is_zero(other) and one.dtype in _FLOATS and one.shape == call.shape:
            return call.result("Relu", one)
    return by_type("Max", "Or", call)


def unequal(call: Call) -> Operand:
    """Translate inequality."""
    return call.like("Not", call.elementwise("Equal", *call.operands))


def remainder(call: Call) -> Operand:
    """Translate the remainder of a quotient rounded towards 0."""
    left, right = call.operands
    return call.result("Mod", left, right, fmod=1)


def power(call: Call) -> Operand:
    """Translate a power of any exponent."""
    base, exponent = call.operands
    return call.elementwise("Pow", base, call.cast(exponent, base.dtype))


def whole_power(call: Call) -> Operand:
    """Translate a power of a fixed integer exponent."""
    exponent, operand = call["y"], call.operand
    if exponent == 2:
        return call.result("Mul", operand, operand)
    if exponent == 3:
        return call.result("Mul", call.like("Mul", operand, operand), operand)
    if exponent == -1:
        return call.result("Reciprocal", operand)
    return call.result("Pow", operand, call.scalar(exponent, operand.dtype))


def square(call: Call) -> Operand:
    """Translate a square."""
    return call.result("Mul", call.operand, call.operand)


def inverse_root(call: Call) -> Operand:
    """Translate 1 / sqrt(x)."""
    return call.result("Reciprocal", call.like("Sqrt", call.operand))


def logarithm_of_more(call: Call) -> Operand:
    """Translate log(1 + x)."""
    one = call.scalar(1, call.dtype)
    return call.result("Log", call.like("Add", call.operand, one))


def exponential_less(call: Call) -> Operand:
    """Translate exp(x) - 1."""
    return call.result("Sub", call.like("Exp", call.operand), call.scalar(1, call.dtype))


def power_of_two(call: Call) -> Operand:
    """Translate 2 to the power of x."""
    scaled = call.like("Mul", call.operand, call.scalar(np.log(2), call.dtype))
    return call.result("Exp", scaled)


def rest_of_error_function(call: Call) -> Operand:
    """Translate 1 - erf(x)."""
    return call.result("Sub", call.scalar(1, call.dtype), call.like("Erf", call.operand))


def is_finite(call: Call) -> Operand:
    """Translate the test for neither infinity nor NaN."""
    kind = (DType.BOOL, call.shape)
    infinite = call.add("IsInf", kind, call.operand)
    return call.result("Not", call.like("Or", infinite, call.add("IsNaN", kind, call.operand)))


def chosen(call: Call) -> Operand:
    """Translate a choice between two operands."""
    which, *cases = call.operands
    if len(cases) == 1:
        return cases[0]
    if which.dtype is not DType.BOOL or len(cases) > 2:
        raise call.refuse(f"chooses among {len(cases)} arrays by a number")
    return call.elementwise("Where", which, cases[1], cases[0], dtype=cases[0].dtype)


def clipped(call: Call) -> Operand:
    """Translate clamping by numbers or arrays."""
    low, operand, high = call.operands
    low, high = call.narrow(low), call.narrow(high)
    if not low.rank and not high.rank:
        return call.result("Clip", operand, low, high)
    kind = (call.dtype, call.shape)
    return call.result("Min", call.add("Max", kind, operand, low), high)


def rounded(call: Call) -> Operand:
    """Translate rounding; halves away from 0, or to even."""
    if int(call["rounding_method"]) == 1:
        return call.result("Round", call.operand)
    size = call.like("Add", call.like("Abs", call.operand), call.scalar(0.5, call.dtype))
    return call.result("Mul", call.like("Floor", size), call.like("Sign", call.operand))


def converted(call: Call) -> Operand:
    """Translate a conversion to another element type."""
    return call.cast(call.operand, call.dtype)


_UNARY = {
    **UNARY,
    "logistic": "Sigmoid",
}
_BINARY = {
    "add": "Add",
    "add_any": "Add",
    "div": "Div",
    "eq": "Equal",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "lt": "Less",
    "mul": "Mul",
    "sub": "Sub",
}

TABLE: dict[str, Callable[[Call], Operand]] = {
    **{name: partial(plain, operator) for name, operator in {**_UNARY, **_BINARY}.items()},
    "and": partial(by_type, "BitwiseAnd", "And"),
    "clamp": clipped,
    "convert_element_type": converted,
    "copy": same,
    "erfc": rest_of_error_function,
    "exp2": power_of_two,
    "expm1": exponential_less,
    "integer_pow": whole_power,
    "is_finite": is_finite,
    "log1p": logarithm_of_more,
    "max": greatest,
    "min": partial(by_type, "Min", "And"),
    "name": same,
    "ne": unequal,
    "not": partial(by_type, "BitwiseNot", "Not"),
    "or": partial(by_type, "BitwiseOr", "Or"),
    "pow": power,
    "reduce_precision": same,
    "rem": remainder,
    "round": rounded,
    "rsqrt": inverse_root,
    "select_n": chosen,
    "sharding_constraint": same,
    "square": square,
    "stop_gradient": same,
    "xor": partial(by_type, "BitwiseXor", "Xor"),
}
