"""Emitters: a node as oneDNN primitives, layouts chosen by the primitives themselves.

An emitter returns False, having added nothing, where oneDNN has no fast implementation.
"""

from collections.abc import Callable

from tightship.engine.lower.builder import Builder
from tightship.engine.lower.onednn.convolution import convolution, transposed_convolution
from tightship.engine.lower.onednn.elementwise import activation, binary, sum_of
from tightship.engine.lower.onednn.matmul import gemm, matmul
from tightship.engine.lower.onednn.movement import channel_shuffle, concat, transpose
from tightship.engine.lower.onednn.normalization import (
    batch_normalization,
    layer_normalization,
    local_response,
    softmax,
)
from tightship.engine.lower.onednn.pooling import global_pooling, pooling, quantized_pooling
from tightship.engine.lower.onednn.post_ops import ACTIVATIONS, BINARY
from tightship.engine.lower.onednn.quantized_addition import quantized_addition
from tightship.engine.lower.onednn.quantized_convolution import quantized_convolution
from tightship.engine.lower.onednn.quantized_product import quantized_gemm, quantized_matmul
from tightship.engine.lower.onednn.recurrent import KINDS, recurrent
from tightship.engine.lower.onednn.resampling import resize
from tightship.graph import Node

Emitter = Callable[[Builder, Node], bool]

EMITTERS: dict[tuple[str, str], Emitter] = {
    **{("", operator): activation for operator in ACTIVATIONS},
    **{("", operator): binary for operator in BINARY},
    **{("", operator): recurrent for operator in KINDS},
    ("", "Clip"): activation,
    ("", "Sum"): sum_of,
    ("", "Conv"): convolution,
    ("", "ConvTranspose"): transposed_convolution,
    ("", "MatMul"): matmul,
    ("", "Gemm"): gemm,
    ("", "MaxPool"): pooling,
    ("", "AveragePool"): pooling,
    ("", "GlobalAveragePool"): global_pooling,
    ("", "GlobalMaxPool"): global_pooling,
    ("", "BatchNormalization"): batch_normalization,
    ("", "LayerNormalization"): layer_normalization,
    ("", "LRN"): local_response,
    ("", "Softmax"): softmax,
    ("", "LogSoftmax"): softmax,
    ("", "Concat"): concat,
    ("", "Resize"): resize,
    ("", "Transpose"): transpose,
    ("tightship", "ChannelShuffle"): channel_shuffle,
}
"""By domain and operator."""

QUANTIZED_EMITTERS: dict[tuple[str, str], Emitter] = {
    ("", "Add"): quantized_addition,
    ("", "Conv"): quantized_convolution,
    ("", "Gemm"): quantized_gemm,
    ("", "MatMul"): quantized_matmul,
    ("", "MaxPool"): quantized_pooling,
}
"""As the others, for operands that are 8-bit integers underneath."""
