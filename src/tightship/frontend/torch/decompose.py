"""A program in core ATen, but for what has an operator of its own in ONNX."""

import torch

KEPT = (
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "avg_pool1d.default",
    "elu.default", "gelu.default", "group_norm.default", "hardsigmoid.default",
    "hardswish.default", "instance_norm.default", "layer_norm.default", "leaky_relu.default",
    "linear.default", "log_softmax.int", "matmul.default", "mish.default", "pixel_shuffle.default",
    "prelu.default", "scaled_dot_product_attention.default", "selu.default", "silu.default",
    "softmax.int", "softplus.default",
    "upsample_bilinear2d.vec", "upsample_nearest2d.vec", "unbind.int",
)  # fmt: skip
"""Operators that would be taken apart, and are written whole."""


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program in the operators that the table of translations has."""
    table = torch.export.default_decompositions()
    for name in KEPT:
        operator, overload = name.split(".")
        table.pop(getattr(getattr(torch.ops.aten, operator), overload), None)
    return program.run_decompositions(table)
