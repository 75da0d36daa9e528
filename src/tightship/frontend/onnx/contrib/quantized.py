"""Quantized operators of the domain com.microsoft, decomposed into those on real numbers."""

from collections.abc import Callable

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation, Value

INT8 = 3
COERCED_BEFORE = 13
"""First opset in which Softmax is along a single axis."""
Rule = Callable[[Pattern], None]


def _real(s: Pattern, first: int) -> str:
    """Dequantize the tensor at an input, with scale and zero point at the next two."""
    names = [s.input(first + offset) for offset in range(3)]
    return s("DequantizeLinear", *names)


def _give(s: Pattern, x: str, first: int, like: str) -> None:
    """Quantize the result by the scale and zero point at an input and the next."""
    scale, zero = s.input(first), s.input(first + 1)
    if not zero:
        zero = s.constant(0, "int8" if s.dtype(like) == INT8 else "uint8")
    s.give(0, s("QuantizeLinear", x, scale, zero))


def _binary(operator: str) -> Rule:
    def spell(s: Pattern) -> None:
        _give(s, s(operator, _real(s, 0), _real(s, 3)), 6, s.input(0))

    return spell


def _unary(operator: str, *attributes: str) -> Rule:
    def spell(s: Pattern) -> None:
        _give(s, s(operator, _real(s, 0), **s.present(*attributes)), 3, s.input(0))

    return spell


def _pooling(operator: str, *attributes: str) -> Rule:
    def spell(s: Pattern) -> None:
        x = _real(s, 0)
        rank = len(s.shape(s.input(0)))
        last = bool(s.integer("channels_last"))
        if last:
            x = s("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])
        x = s(operator, x, **s.present(*attributes))
        if last:
            x = s("Transpose", x, perm=[0, *range(2, rank), 1])
        _give(s, x, 3, s.input(0))

    return spell


def concat(s: Pattern) -> None:
    """Decompose a Concat of tensors with scales of their own."""
    parts = [_real(s, first) for first in range(2, len(s.node.input), 3)]
    _give(s, s("Concat", *parts, axis=s.integer("axis")), 0, s.input(2))


def softmax(s: Pattern) -> None:
    """Decompose Softmax; before opset 13 it normalizes all axes from the given one together."""
    x, axis = _real(s, 0), s.integer("axis")
    if s.integer("opset") >= COERCED_BEFORE:
        _give(s, s("Softmax", x, axis=axis), 3, s.input(0))
        return
    flat = s("Softmax", s("Flatten", x, axis=axis), axis=-1)
    _give(s, s("Reshape", flat, s("Shape", s.input(0))), 3, s.input(0))


def gemm(s: Pattern) -> None:
    """Decompose Gemm with an int32 bias; the result is real if it has no scale."""
    turned, alpha = s.integer("transB"), s.number("alpha")
    left, scales = _real(s, 0), [s.input(1), s.input(4)]
    right = s("DequantizeLinear", *(s.input(index) for index in (3, 4, 5)), axis=0 if turned else 1)
    inputs = [left, right]
    if s.input(6):
        step = s("Mul", *scales)
        if alpha != 1.0:
            step = s("Mul", step, s.constant(alpha, "float32"))
        inputs.append(s("Mul", s("Cast", s.input(6), to=1), step))
    x = s("Gemm", *inputs, alpha=alpha, transA=s.integer("transA"), transB=turned)
    if s.input(7):
        _give(s, x, 7, s.input(0))
    else:
        s.give(0, x)


def dynamic_matmul(s: Pattern) -> None:
    """Decompose a product whose left operand is quantized by its own range."""
    left, scale, zero = s.many("DynamicQuantizeLinear", 3, s.input(0))
    _scaled(s, (left, scale, zero), (s.input(1), s.input(2), s.input(3)), s.input(4))


def matmul_to_float(s: Pattern) -> None:
    """Decompose a product of integers."""
    left, right, left_scale, right_scale, left_zero, right_zero, bias = (
        s.input(index) for index in range(7)
    )
    if not left_zero:
        left_zero = s.constant(0, "int8" if s.dtype(left) == INT8 else "uint8")
    _scaled(s, (left, left_scale, left_zero), (right, right_scale, right_zero), bias)


def _scaled(s: Pattern, left: tuple[str, str, str], right: tuple[str, str, str], bias: str) -> None:
    sums = s("MatMulInteger", left[0], right[0], left[2], right[2])
    x = s("Mul", s("Cast", sums, to=1), s("Mul", left[1], right[1]))
    s.give(0, s("Add", x, bias) if bias else x)


def _same(operator: str) -> Rule:
    def spell(s: Pattern) -> None:
        s.give(0, s(operator, *s.inputs(), **s.present("axis")))

    return spell


_TWO = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?"
_ONE = "X X_scale X_zero_point? Y_scale Y_zero_point?"
_POOL: dict[str, Value] = {
    "auto_pad": "NOTSET", "ceil_mode": 0, "count_include_pad": 0, "kernel_shape": REQUIRED,
    "pads": None, "strides": None,
}  # fmt: skip
_LAST: dict[str, Value] = {"channels_last": 0}

QUANTIZED = {
    "DequantizeLinear": Translation(
        _same("DequantizeLinear"), "x x_scale x_zero_point?", "y", {"axis": None}
    ),
    "DynamicQuantizeMatMul": Translation(dynamic_matmul, "A B b_scale b_zero_point? bias?", "Y"),
    "MatMulIntegerToFloat": Translation(
        matmul_to_float, "A B a_scale b_scale a_zero_point? b_zero_point? bias?", "Y"
    ),
    "QGemm": Translation(
        gemm,
        "A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point?",
        "Y",
        {"alpha": 1.0, "transA": 0, "transB": 0},
    ),
    "QLinearAdd": Translation(_binary("Add"), _TWO, "C"),
    "QLinearAveragePool": Translation(
        _pooling("AveragePool", *_POOL),
        "X x_scale x_zero_point? y_scale y_zero_point?",
        "Y",
        _POOL | _LAST,
    ),
    "QLinearConcat": Translation(concat, "Y_scale Y_zero_point *inputs", "Y", {"axis": REQUIRED}),
    "QLinearGlobalAveragePool": Translation(
        _pooling("GlobalAveragePool"), "X x_scale x_zero_point y_scale y_zero_point", "Y", _LAST
    ),
    "QLinearLeakyRelu": Translation(_unary("LeakyRelu", "alpha"), _ONE, "Y", {"alpha": 0.01}),
    "QLinearMul": Translation(_binary("Mul"), _TWO, "C"),
    "QLinearSigmoid": Translation(_unary("Sigmoid"), _ONE, "Y"),
    "QLinearSoftmax": Translation(
        softmax,
        "X X_scale x_zero_point? y_scale y_zero_point",
        "Y",
        {"axis": -1, "opset": REQUIRED},
    ),
    "QuantizeLinear": Translation(
        _same("QuantizeLinear"), "x y_scale y_zero_point?", "y", {"axis": None}
    ),
}
"""Translations by operator."""
