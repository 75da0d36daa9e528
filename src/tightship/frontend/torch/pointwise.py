"""Elementwise operators."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from tightship.frontend.same_names import UNARY
from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.torch.tensor import dtype_of
from tightship.frontend.writer import Operand
from tightship.graph import DType, Fill
from tightship.graph.length import same_for_all

_FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)


def unary(operator: str, call: Call) -> Operand:
    """Translate an operator of one operand, in the type of the result."""
    return call.result(operator, call.cast(call["self"], call.dtype))


def same(call: Call) -> Operand:
    """Return the operand itself."""
    operand: Operand = call["self"]
    return operand


def binary(operator: str, call: Call) -> Operand:
    """Translate an operator of two operands, both in the type of the result."""
    return call.result(operator, *_operands(call, call.dtype))


def scaled_sum(operator: str, call: Call) -> Operand:
    """Translate a sum or difference with `alpha` times the second term; Or for booleans."""
    left, right = _operands(call, call.dtype)
    if call.dtype is DType.BOOL:
        return call.result("Or", left, right)
    if call["alpha"] != 1:
        right = call.like("Mul", right, call.scalar(call["alpha"], call.dtype))
    return call.result(operator, left, right)


def reversed_difference(call: Call) -> Operand:
    """Translate `other - self`."""
    left, right = _operands(call, call.dtype)
    return call.result("Sub", right, left)


def product(call: Call) -> Operand:
    """Translate a product; And for booleans."""
    return binary("And" if call.dtype is DType.BOOL else "Mul", call)


def comparison(operator: str, call: Call) -> Operand:
    """Translate a comparison in the type that both operands promote to."""
    arguments = [
        each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in call.node.args
    ]
    common = dtype_of(torch.result_type(*arguments), f"Node `{call.node.name}`")
    left, right = _operands(call, common)
    if operator != "NotEqual":
        return call.result(operator, left, right)
    return call.result("Not", call.add("Equal", (DType.BOOL, call.shape), left, right))


def bitwise(logical: str, call: Call) -> Operand:
    """Translate a bitwise operator; the logical one for booleans."""
    return binary(logical if call.dtype is DType.BOOL else f"Bitwise{logical}", call)


def negated(call: Call) -> Operand:
    """Translate a bitwise negation; Not for booleans."""
    return unary("Not" if call.dtype is DType.BOOL else "BitwiseNot", call)


def logical(operator: str, call: Call) -> Operand:
    """Translate a logical operator of operands of any type."""
    operands = [call.cast(call[n], DType.BOOL) for n in ("self", "other") if n in call.arguments]
    return call.result(operator, *operands)


def quotient(call: Call) -> Operand:
    """Translate a quotient, rounded by `rounding_mode`."""
    mode = call.arguments.get("rounding_mode")
    left, right = _operands(call, call.dtype)
    if mode is None or (mode == "trunc" and call.dtype not in _FLOATS):
        return call.result("Div", left, right)
    if call.dtype not in _FLOATS:
        return _floor_quotient(call, left, right)
    raw = call.add("Div", (call.dtype, call.shape), left, right)
    if mode == "floor":
        return call.result("Floor", raw)
    return _truncated(call, raw)


def truncated(call: Call) -> Operand:
    """Translate `trunc`, which rounds towards 0."""
    return _truncated(call, call["self"])


def _truncated(call: Call, operand: Operand) -> Operand:
    size = call.like("Floor", call.like("Abs", operand))
    return call.result("Mul", size, call.like("Sign", operand))


def _floor_quotient(call: Call, left: Operand, right: Operand) -> Operand:
    """Divide integers, rounding down, by subtracting the remainder first."""
    rest = call.add("Mod", (call.dtype, call.shape), left, right)
    return call.result("Div", call.add("Sub", (call.dtype, call.shape), left, rest), right)


def remainder(call: Call) -> Operand:
    """Translate the remainder of the quotient rounded down."""
    left, right = _operands(call, call.dtype)
    if call.dtype not in _FLOATS:
        return call.result("Mod", left, right)
    type_ = (call.dtype, call.shape)
    whole = call.add("Floor", type_, call.add("Div", type_, left, right))
    return call.result("Sub", left, call.add("Mul", type_, whole, right))


def power(call: Call) -> Operand:
    """Translate a power; squares and square roots have operators of their own."""
    base, exponent = call["self"], call["exponent"]
    base = call.number_or_tensor(base, call.dtype)
    if exponent == 2:
        return call.result("Mul", base, base)
    if exponent == 0.5:
        return call.result("Sqrt", base)
    return call.result("Pow", base, call.number_or_tensor(exponent, call.dtype))


def inverse_root(call: Call) -> Operand:
    """Translate 1 / sqrt(x)."""
    operand = call.cast(call["self"], call.dtype)
    return call.result("Reciprocal", call.like("Sqrt", operand))


def logarithm_of_more(call: Call) -> Operand:
    """Translate log(1 + x)."""
    operand = call.cast(call["self"], call.dtype)
    return call.result("Log", call.like("Add", operand, call.scalar(1, call.dtype)))


def exponential_less(call: Call) -> Operand:
    """Translate exp(x) - 1."""
    operand = call.cast(call["self"], call.dtype)
    return call.result("Sub", call.like("Exp", operand), call.scalar(1, call.dtype))


def logarithm(base: float, call: Call) -> Operand:
    """Translate a logarithm of another base than e."""
    operand = call.cast(call["self"], call.dtype)
    return call.result(
        "Mul", call.like("Log", operand), call.scalar(1 / math.log(base), call.dtype)
    )


def gelu(call: Call) -> Operand:
    """Translate Gelu, exact or by tanh."""
    return call.result("Gelu", call["self"], approximate=call["approximate"])


def silu(call: Call) -> Operand:
    """Translate x sigmoid(x)."""
    operand = call["self"]
    return call.result("Mul", operand, call.like("Sigmoid", operand))


def hard_sigmoid(call: Call) -> Operand:
    """Translate HardSigmoid."""
    return call.result("HardSigmoid", call["self"], alpha=1 / 6, beta=0.5)


def leaky_relu(call: Call) -> Operand:
    """Translate LeakyReLU."""
    return call.result("LeakyRelu", call["self"], alpha=float(call["negative_slope"]))


def elu(call: Call) -> Operand:
    """Translate Elu, scaled for Selu."""
    if call["input_scale"] != 1:
        raise refused(call.node, f"has the `input_scale` {call['input_scale']}; only 1 is known")
    alpha, scale = float(call["alpha"]), call["scale"]
    if scale == 1:
        return call.result("Elu", call["self"], alpha=alpha)
    plain = call.like("Elu", call["self"], alpha=alpha)
    return call.result("Mul", plain, call.scalar(scale, call.dtype))


def softplus(call: Call) -> Operand:
    """Translate log(1 + exp(beta x)) / beta, which equals x above `threshold` up to rounding."""
    beta = call["beta"]
    if beta == 1:
        return call.result("Softplus", call["self"])
    operand = call.like("Mul", call["self"], call.scalar(beta, call.dtype))
    return call.result("Div", call.like("Softplus", operand), call.scalar(beta, call.dtype))


def prelu(call: Call) -> Operand:
    """Translate PReLU, with a slope for each channel."""
    operand, slope = call["self"], call["weight"]
    if operand.rank > 1:
        slope = call.reshaped(slope, [*slope.shape, *[1] * (operand.rank - 2)])
    return call.result("PRelu", operand, slope)


def clipped(low: str, high: str, call: Call) -> Operand:
    """Translate clamping by numbers or tensors, either of which may be absent."""
    operand = call.cast(call["self"], call.dtype)
    below, above = (
        None if value is None else call.number_or_tensor(value, call.dtype)
        for value in (call.arguments.get(low), call.arguments.get(high))
    )
    if all(limit is None or limit.rank == 0 for limit in (below, above)):
        return call.result("Clip", operand, below, above)
    for operator, limit in (("Max", below), ("Min", above)):
        if limit is not None:
            operand = call.add(operator, (call.dtype, call.shape), operand, limit)
    return operand


def chosen(call: Call) -> Operand:
    """Translate `where`."""
    condition = call.cast(call["condition"], DType.BOOL)
    return call.result("Where", condition, *_operands(call, call.dtype))


def _as_number(call: Call, operand: Operand) -> Operand:
    """Return a tensor of one number as a scalar, if another operand has the result's shape."""
    constant = call.writer.constants.get(operand.name)
    return call.held(constant.value.reshape(())) if isinstance(constant, Fill) else operand


def filled(number: float, call: Call) -> Operand:
    """Translate a tensor of one number; uninitialized tensors get zeros."""
    value = call.arguments.get("fill_value", number)
    element = np.array(value).astype(call.dtype.numpy)
    return call.writer.constant(call.node.name, Fill(element, call.shape))


def copied(call: Call) -> Operand:
    """Translate `copy`: the source in the target's type and shape."""
    source = call.cast(call["src"], call.dtype)
    if same_for_all(source.shape, call.shape):
        return source
    return call.result("Expand", source, call.integers(*call.shape))


def converted(call: Call) -> Operand:
    """Translate a conversion to another element type."""
    return call.cast(call["self"], call.dtype)


def _operands(call: Call, dtype: DType) -> tuple[Operand, Operand]:
    """Return both operands in a type; a tensor of one number becomes that number."""
    left = call.number_or_tensor(call["self"], dtype)
    right = call.number_or_tensor(call["other"], dtype)
    if same_for_all(right.shape, call.shape):
        left = _as_number(call, left)
    elif same_for_all(left.shape, call.shape):
        right = _as_number(call, right)
    return left, right


_UNARY = {
    **UNARY,
    "hardswish": "HardSwish",
    "mish": "Mish",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "round": "Round",
    "selu": "Selu",
    "sigmoid": "Sigmoid",
}
_COMPARISONS = {
    "eq": "Equal",
    "ne": "NotEqual",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}

TABLE: dict[str, Callable[[Call], Operand]] = {
    **{f"{name}.default": partial(unary, operator) for name, operator in _UNARY.items()},
    **{
        f"{name}.{overload}": partial(comparison, operator)
        for name, operator in _COMPARISONS.items()
        for overload in ("Scalar", "Tensor")
    },
    "_to_copy.default": converted,
    "add.Scalar": partial(scaled_sum, "Add"),
    "add.Tensor": partial(scaled_sum, "Add"),
    "alias.default": same,
    "bitwise_and.Scalar": partial(bitwise, "And"),
    "bitwise_and.Tensor": partial(bitwise, "And"),
    "bitwise_not.default": negated,
    "bitwise_or.Scalar": partial(bitwise, "Or"),
    "bitwise_or.Tensor": partial(bitwise, "Or"),
    "bitwise_xor.Tensor": partial(bitwise, "Xor"),
    "clamp.Tensor": partial(clipped, "min", "max"),
    "clamp.default": partial(clipped, "min", "max"),
    "clamp_max.default": partial(clipped, "", "max"),
    "clamp_min.default": partial(clipped, "min", ""),
    "clone.default": same,
    "contiguous.default": same,
    "copy.default": copied,
    "detach.default": same,
    "div.Scalar": quotient,
    "div.Scalar_mode": quotient,
    "div.Tensor": quotient,
    "div.Tensor_mode": quotient,
    "elu.default": elu,
    "empty.memory_format": partial(filled, 0),
    "empty_permuted.default": partial(filled, 0),
    "expm1.default": exponential_less,
    "full_like.default": partial(filled, 0),
    "gelu.default": gelu,
    "hardsigmoid.default": hard_sigmoid,
    "hardtanh.default": partial(clipped, "min_val", "max_val"),
    "isinf.default": lambda call: call.result("IsInf", call["self"]),
    "isnan.default": lambda call: call.result("IsNaN", call["self"]),
    "leaky_relu.default": leaky_relu,
    "lift_fresh_copy.default": same,
    "log10.default": partial(logarithm, 10),
    "log1p.default": logarithm_of_more,
    "log2.default": partial(logarithm, 2),
    "logical_and.default": partial(logical, "And"),
    "logical_not.default": partial(logical, "Not"),
    "logical_or.default": partial(logical, "Or"),
    "logical_xor.default": partial(logical, "Xor"),
    "maximum.default": partial(binary, "Max"),
    "minimum.default": partial(binary, "Min"),
    "mul.Scalar": product,
    "mul.Tensor": product,
    "new_empty_strided.default": partial(filled, 0),
    "ones_like.default": partial(filled, 1),
    "pow.Scalar": power,
    "pow.Tensor_Scalar": power,
    "pow.Tensor_Tensor": power,
    "prelu.default": prelu,
    "remainder.Scalar": remainder,
    "remainder.Tensor": remainder,
    "rsqrt.default": inverse_root,
    "rsub.Scalar": reversed_difference,
    "rsub.Tensor": reversed_difference,
    "silu.default": silu,
    "softplus.default": softplus,
    "sub.Scalar": partial(scaled_sum, "Sub"),
    "sub.Tensor": partial(scaled_sum, "Sub"),
    "trunc.default": truncated,
    "where.self": chosen,
    "zeros_like.default": partial(filled, 0),
}
