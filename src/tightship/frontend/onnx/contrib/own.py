"""Operators of our own that frontends write into models: matrices stored in blocks or rows."""

from onnx import TensorProto

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.quantized_weights import (
    block_form,
    check_shape,
    real_matrix,
)
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation
from tightship.graph.row_codes import ROW_CODES, row_bytes

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


def dequantize_rows(s: Pattern) -> None:
    """Write a matrix of float32, [rows, depth], of encoded rows."""
    kind, rows, depth = s.text("type"), s.count("rows"), s.count("depth")
    if kind not in ROW_CODES:
        raise s.refusal(f"`type` = {kind!r}", f"it must be {', '.join(ROW_CODES)}")
    size = row_bytes(kind, depth)
    if not size:
        raise s.refusal(f"rows of {depth} elements", f"{ROW_CODES[kind][0]} must divide them")
    check_shape(s, 0, "rows", [rows, size])
    if s.dtype(s.input(0)) != TensorProto.UINT8:
        raise s.refusal("rows of another type", "they must be uint8")
    s.give(0, s.own("DequantizeRows", (TensorProto.FLOAT, (rows, depth)), s.input(0),
                    rows=rows, depth=depth, type=kind))  # fmt: skip


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
    "DequantizeRows": Translation(
        dequantize_rows,
        "stored",
        "matrix",
        {"rows": REQUIRED, "depth": REQUIRED, "type": REQUIRED},
    ),
}  # fmt: skip
"""Translations by operator."""
