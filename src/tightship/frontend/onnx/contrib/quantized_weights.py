"""Products by weights stored as small integers, decomposed into those by real weights."""

import numpy as np
from onnx import TensorProto

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation, Value


def matmul_by_blocks(s: Pattern) -> None:
    """Decompose a product by weights of 2, 4 or 8 bits, with a scale for each block of a row."""
    bits, depth = s.integer("bits"), s.integer("K")
    if bits not in (2, 4, 8):
        raise s.refusal(f"`bits` = {bits}", "it must be 2, 4 or 8")
    stored, scales, zeros = s.input(1), s.input(2), s.input(3)
    dtype = s.dtype(s.input(0))
    rows, blocks = s.length(stored, 0), s.length(stored, 1)
    size, wanted = s.integer("block_size"), s.integer("N")
    if rows != wanted or blocks * size < depth or s.length(stored, 2) * 8 != size * bits:
        raise s.refusal(
            f"`N` = {wanted}, `K` = {depth}, `block_size` = {size} and weights of the shape "
            f"{list(s.shape(stored))}",
            f"the shape must be [N, K / block_size, block_size * {bits} / 8]",
        )
    each = s.constant([rows, blocks, 1])
    whole = s("Cast", _unpacked(s, stored, bits, [rows, blocks, -1]), to=dtype)
    middle = s.like(2 ** (bits - 1), s.input(0))
    if zeros and s.dtype(zeros) == TensorProto.UINT8:
        points = _unpacked(s, s("Reshape", zeros, s.constant([rows, -1])), bits, [rows, -1])
        points = s("Slice", points, s.constant([0]), s.constant([blocks]), s.constant([1]))
        middle = s("Cast", s("Reshape", points, each), to=dtype)
    elif zeros:
        middle = s("Reshape", zeros, each)
    real = s("Mul", s("Sub", whole, middle), s("Reshape", scales, each))
    flat = s("Reshape", real, s.constant([rows, -1]))
    matrix = s("Slice", flat, s.constant([0]), s.constant([depth]), s.constant([1]))
    product = s("MatMul", s.input(0), s("Transpose", matrix, perm=[1, 0]))
    s.give(0, s("Add", product, s.input(5)) if s.input(5) else product)


def _unpacked(s: Pattern, stored: str, bits: int, shape: list[int]) -> str:
    """Unpack integers smaller than a byte, the lowest first, to bytes in this shape."""
    if bits == 8:
        return s("Reshape", stored, s.constant(shape))
    low = s.constant(2**bits - 1, np.uint8)
    parts = []
    for shift in range(0, 8, bits):
        moved = s("BitShift", stored, s.constant(shift, np.uint8), direction="RIGHT")
        parts.append(s("Unsqueeze", s("BitwiseAnd", moved, low), s.constant([-1])))
    return s("Reshape", s("Concat", *parts, axis=-1), s.constant(shape))


def lstm(s: Pattern) -> None:
    """Decompose an LSTM with integer weights; inputs and states stay real numbers."""
    weights = [_real(s, index, scale) for index, scale in ((1, 8), (2, 10))]
    others = (s.input(index) for index in range(3, 8))
    count = len(s.node.output)
    outputs = s.many("LSTM", count, s.input(0), *weights, *others, **s.present(*_LSTM))
    for index, name in enumerate(outputs):
        s.give(index, name)


def _real(s: Pattern, index: int, scale: int) -> str:
    """Dequantize and transpose weights [directions, from, to] for LSTM."""
    parts = [s("Cast", s.input(index), to=TensorProto.FLOAT)]
    directions = s.length(s.input(index), 0)
    aside = s.constant([directions, 1, -1])
    if s.input(scale + 1):
        zero = s("Cast", s.input(scale + 1), to=TensorProto.FLOAT)
        parts = [s("Sub", parts[0], s("Reshape", zero, aside))]
    real = s("Mul", parts[0], s("Reshape", s.input(scale), aside))
    return s("Transpose", real, perm=[0, 2, 1])


_LSTM: dict[str, Value] = {
    "activation_alpha": None, "activation_beta": None, "activations": None, "clip": None,
    "direction": "forward", "hidden_size": None, "input_forget": 0,
}  # fmt: skip
QUANTIZED_WEIGHTS = {
    "DynamicQuantizeLSTM": Translation(
        lstm,
        "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale "
        "R_zero_point",
        "Y? Y_h? Y_c?",
        _LSTM,
    ),
    "MatMulNBits": Translation(
        matmul_by_blocks,
        "A B scales zero_points? !g_idx bias?",
        "Y",
        {"K": REQUIRED, "N": REQUIRED, "bits": 4, "block_size": REQUIRED},
        only={"weight_prepacked": (0,)},
        idle={"accuracy_level": "allows less accuracy than there is"},
    ),
}
"""Translations by operator."""
