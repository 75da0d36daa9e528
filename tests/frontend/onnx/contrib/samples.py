"""A few nodes of each operator of ONNX Runtime's; together they have all that is supported."""

from typing import Any

import numpy as np

from tests.frontend.onnx.contrib.case import Case, integers, normal

ALSO = ("com.microsoft", "SimplifiedLayerNormalization")
"""Name of the operator in ONNX's own domain too; only ONNX Runtime knows it."""

_IDS = np.array([[1, 2, 3], [4, 0, 2]], np.int32)
_PAST = normal(2, 2, 3, 4)
_SCALE = np.float32(0.05)
_ZERO = np.array(3, np.uint8)


def _quantized(operator: str, *shapes: tuple[int, ...], **attributes: Any) -> Case:
    """Tensors with scales and zero points, then those of the result."""
    inputs: dict[str, Any] = {}
    for place, shape in enumerate(shapes):
        inputs |= {f"x{place}": integers(np.uint8, *shape), f"s{place}": _SCALE, f"z{place}": _ZERO}
    inputs |= {"s": _SCALE, "z": _ZERO}
    weights = tuple(name for name in inputs if name[0] != "x")
    return Case(operator, inputs, attributes, weights=weights)


def _normalized(operator: str, *, domain: str = "com.microsoft") -> Case:
    return Case(operator, {"x": normal(2, 5, 12), "scale": normal(12)},
                {"axis": -1, "epsilon": 1e-3}, domain=domain, opset=13)  # fmt: skip


def _skipped(operator: str, **inputs: Any) -> Case:
    given = {"x": normal(2, 5, 12), "skip": normal(2, 5, 12), "scale": normal(12), **inputs}
    return Case(operator, given, {"epsilon": 1e-5}, ("y", "", "", "sum"))


_GROUPED = {
    "q": normal(1, 1, 12), "k": normal(1, 1, 4), "v": normal(1, 1, 4), "pk": normal(1, 1, 3, 4),
    "pv": normal(1, 1, 3, 4), "lengths": np.array([3], np.int32), "total": np.array([4], np.int32),
    "c": np.cos(normal(6, 2)), "s": np.sin(normal(6, 2)), "places": np.array([[3]]),
    "bias": normal(1, 1, 1, 4),
}  # fmt: skip
_LSTM = {
    "x": normal(5, 2, 8), "w": integers(np.uint8, 1, 8, 16), "r": integers(np.uint8, 1, 4, 16),
    "b": normal(1, 32), "lengths": np.array([5, 4], np.int32), "h": normal(1, 2, 4),
    "c": normal(1, 2, 4), "p": normal(1, 12), "ws": np.full(1, _SCALE), "wz": np.full(1, _ZERO),
    "rs": np.full(1, _SCALE), "rz": np.full(1, _ZERO),
}  # fmt: skip

_CASES = [
    Case("BiasGelu", {"x": normal(2, 12), "b": normal(12)}),
    Case("FastGelu", {"x": normal(2, 12), "b": normal(12)}),
    Case("Gelu", {"x": normal(2, 12)}),
    Case("QuickGelu", {"x": normal(2, 12)}, {"alpha": 0.7}),
    Case("Attention", {
        "x": normal(2, 3, 7), "w": normal(7, 24), "b": normal(24), "mask": _IDS % 2,
        "past": None, "bias": normal(2, 2, 3, 3),
    }, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 8]}, weights=("w", "b")),
    Case("Attention", {
        "x": normal(2, 3, 7), "w": normal(7, 24), "b": normal(24), "mask": None,
        "past": normal(2, 2, 2, 3, 4),
    }, {"num_heads": 2}, ("y", "present"), ("w", "b")),
    Case("MultiHeadAttention", {
        "q": normal(2, 3, 8), "k": normal(2, 3, 8), "v": normal(2, 3, 8), "b": normal(24),
        "mask": np.ones((2, 6), np.int32), "bias": normal(1, 2, 3, 6), "pk": _PAST, "pv": _PAST,
    }, {"num_heads": 2}, ("y", "present_key", "present_value")),
    Case("RotaryEmbedding", {
        "x": normal(2, 3, 8), "p": _IDS.astype(np.int64), "c": normal(6, 2), "s": normal(6, 2),
    }, {"num_heads": 2}),
    Case("GroupQueryAttention", _GROUPED, {"num_heads": 3, "kv_num_heads": 1, "do_rotary": 1},
         ("y", "present_key", "present_value")),
    Case("EmbedLayerNormalization", {
        "ids": _IDS, "segments": _IDS % 2, "words": normal(6, 8), "positions": normal(6, 8),
        "table": normal(2, 8), "scale": normal(8), "shift": normal(8), "mask": _IDS % 2,
        "places": _IDS,
    }, outputs=("y", "lengths", "sum")),
    _normalized("SimplifiedLayerNormalization", domain=""),
    Case("LayerNormalization", {"x": normal(2, 12), "scale": normal(12), "shift": normal(12)},
         {"axis": -1}, ("y", "mean", "deviation"), domain="", opset=13),
    _skipped("SkipLayerNormalization", shift=normal(12), bias=normal(12)),
    _skipped("SkipSimplifiedLayerNormalization", bias=normal(12)),
    Case("FusedConv", {"x": normal(1, 3, 8, 8), "w": normal(6, 3, 3, 3), "b": normal(6),
         "z": normal(1, 6, 6, 6)}, {"activation": "Relu"}),
    Case("FusedGemm", {"a": normal(4, 6), "b": normal(6, 5), "c": normal(5)},
         {"activation": "HardSigmoid"}),
    Case("FusedMatMul", {"a": normal(4, 6), "b": normal(6, 5)}, {"alpha": 2.0}),
    Case("TransposeMatMul", {"a": normal(4, 6), "b": normal(6, 5)}, {"alpha": 2.0}),
    Case("DequantizeLinear", {"x": integers(np.uint8, 4), "s": _SCALE, "z": _ZERO}),
    Case("QuantizeLinear", {"x": normal(4), "s": _SCALE, "z": _ZERO}),
    Case("DynamicQuantizeMatMul", {"a": normal(3, 8), "b": integers(np.uint8, 8, 6), "s": _SCALE,
         "z": _ZERO, "c": normal(6)}),
    Case("MatMulIntegerToFloat", {"a": integers(np.uint8, 3, 8), "b": integers(np.uint8, 8, 6),
         "as": _SCALE, "bs": _SCALE, "az": _ZERO, "bz": _ZERO, "c": normal(6)}),
    Case("QGemm", {"a": integers(np.uint8, 3, 8), "as": _SCALE, "az": _ZERO,
         "b": integers(np.uint8, 8, 6), "bs": _SCALE, "bz": _ZERO,
         "c": np.arange(6, dtype=np.int32), "s": _SCALE, "z": _ZERO},
         weights=("as", "az", "b", "bs", "bz", "c", "s", "z")),
    _quantized("QLinearAdd", (2, 4), (2, 4)),
    _quantized("QLinearMul", (2, 4), (2, 4)),
    _quantized("QLinearAveragePool", (1, 3, 6, 6), kernel_shape=[3, 3]),
    _quantized("QLinearGlobalAveragePool", (1, 3, 6, 6), channels_last=1),
    _quantized("QLinearLeakyRelu", (2, 4), alpha=0.2),
    _quantized("QLinearSigmoid", (2, 4)),
    _quantized("QLinearSoftmax", (2, 4), opset=13),
    Case("QLinearConcat", {"s": _SCALE, "z": _ZERO, "x": integers(np.uint8, 2, 4), "xs": _SCALE,
         "xz": _ZERO}, {"axis": 0}, weights=("s", "z", "xs", "xz")),
    Case("DynamicQuantizeLSTM", _LSTM, {"hidden_size": 4}, ("y", "yh", "yc"),
         tuple(name for name in _LSTM if name not in "xhc")),
    Case("GatherBlockQuantized", {
        "table": integers(np.uint8, 6, 16), "ids": np.array([5, 0], np.int64),
        "scales": normal(6, 2), "zeros": integers(np.uint8, 6, 1),
    }, {"block_size": 16}, weights=("table", "scales", "zeros")),
    Case("MatMulNBits", {
        "x": normal(2, 32), "w": integers(np.uint8, 6, 2, 8), "scales": normal(12),
        "zeros": integers(np.uint8, 6), "order": None, "bias": normal(6),
    }, {"K": 32, "N": 6, "bits": 4, "block_size": 16}, weights=("w", "scales", "zeros", "bias")),
]  # fmt: skip

CASES: dict[str, list[Case]] = {}
for _case in _CASES:
    CASES.setdefault(_case.operator, []).append(_case)
