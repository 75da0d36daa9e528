"""Operators of our own that frontends write into models: matrices stored in blocks or rows."""

from onnx import TensorProto

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.quantized_weights import (
    block_form,
    check_shape,
    real_matrix,
)
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation

SCALES = (TensorProto.FLOAT, TensorProto.FLOAT16)
MODES = ("exact", "int8")


def dequantize_blocks(s: Pattern) -> None:
    """Write a matrix of float32, [rows, depth], of integers with a scale for each block."""
    mode = s.text("mode")
    if mode not in MODES:
        raise s.refusal(f"`mode` = {mode!r}", f"it must be {' or '.join(MODES)}")
    form = block_form(s, "rows", "depth")
    check_shape(s, 0, "integers", [form.rows, form.blocks * form.size * form.bits // 8])
    check_shape(s, 1, "scales", [form.rows, form.blocks])
    if s.dtype(s.input(0)) != TensorProto.UINT8 or s.dtype(s.input(1)) not in SCALES:
        raise s.refusal("integers or scales of other types", "they must be uint8 and float")
    s.give(0, real_matrix(s, form, TensorProto.FLOAT, (0, 1, 2), mode))


OWN = {
    "DequantizeBlocks": Translation(
        dequantize_blocks,
        "integers scales zeros?",
        "matrix",
        {
            "rows": REQUIRED, "depth": REQUIRED, "bits": REQUIRED, "block_size": REQUIRED,
            "mode": "exact",
        },
    ),
}  # fmt: skip
"""Translations by operator."""
