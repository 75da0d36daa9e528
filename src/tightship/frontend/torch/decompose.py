"""Decomposition of programs to core ATen, except operators that ONNX or training has."""

import warnings
from collections.abc import Callable

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.export.exported_program import _decompose_exported_program
from torch.nn.attention import SDPBackend, sdpa_kernel

KEPT = (
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "avg_pool1d.default",
    "elu.default", "gelu.default", "group_norm.default", "hardsigmoid.default",
    "hardswish.default", "instance_norm.default", "layer_norm.default", "leaky_relu.default",
    "linear.default", "log_softmax.int", "matmul.default", "mish.default", "pixel_shuffle.default",
    "prelu.default", "scaled_dot_product_attention.default", "selu.default", "silu.default",
    "softmax.int", "softplus.default",
    "upsample_bilinear2d.vec", "upsample_nearest2d.vec", "unbind.int",
)  # fmt: skip
"""Operators that are kept whole instead of being decomposed."""


def ignore_own_warnings() -> None:
    """Ignore warnings about what torch itself does.

    It copies its own tree of arguments, and its recurrent layers assign their weights again when
    they are exported. The filters stay, because `catch_warnings` would change those of other
    threads. They are narrow. Repeated calls change nothing.
    """
    warnings.filterwarnings(
        "ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning, "copyreg"
    )
    warnings.filterwarnings("ignore", r"The tensor attributes? \S+\._flat_weights\[", UserWarning)


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return the program in the operators of the table of translations."""
    table = torch.export.default_decompositions()
    for name in KEPT:
        operator, overload = name.split(".")
        table.pop(getattr(getattr(torch.ops.aten, operator), overload), None)
    ignore_own_warnings()
    return program.run_decompositions(table)


KEPT_OF_TRAINING = (
    "_adaptive_avg_pool2d_backward", "_log_softmax_backward_data", "_softmax_backward_data",
    "avg_pool2d_backward", "embedding_dense_backward", "gelu_backward", "hardsigmoid",
    "hardsigmoid_backward", "hardswish", "hardswish_backward", "leaky_relu_backward",
    "native_batch_norm_backward", "native_dropout", "native_dropout_backward",
    "native_layer_norm_backward", "nll_loss2d_backward", "nll_loss2d_forward",
    "nll_loss_backward", "nll_loss_forward", "select_backward", "select_scatter",
    "sigmoid_backward", "silu", "slice_backward", "tanh_backward",
    "threshold_backward",
)  # fmt: skip
"""Operators of a training step that are kept whole instead of being decomposed."""


def decompositions_of_training() -> dict[torch._ops.OperatorBase, Callable[..., object]]:
    """Return the decompositions of a training step."""
    table = core_aten_decompositions()
    for name in KEPT_OF_TRAINING:
        table.pop(getattr(torch.ops.aten, name).default, None)
    table.update(get_decompositions([torch.ops.aten.native_group_norm]))
    found: dict[torch._ops.OperatorBase, Callable[..., object]] = table
    return found


def joint(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Add the backward path of a program's first output, a scalar, by AOT autograd.

    Attention is decomposed before autograd, because its own backward operator has no translation.
    """
    table = decompositions_of_training()
    ignore_own_warnings()
    with sdpa_kernel(SDPBackend.MATH):
        return _decompose_exported_program(
            program,
            cia_to_decomp={},
            python_decomp_table=table,
            joint_loss_index=0,
            decompose_custom_triton_ops=False,
        )


def tell_sources(program: torch.export.ExportedProgram, step: torch.export.ExportedProgram) -> None:
    """Give nodes the source line of their operator, if it is called only once."""
    calls: dict[object, list[str]] = {}
    for node in program.graph.nodes:
        calls.setdefault(node.target, []).append(node.meta.get("stack_trace") or "")
    for node in step.graph.nodes:
        lines = calls.get(node.target, ())
        node.meta["stack_trace"] = lines[0] if len(lines) == 1 else ""
