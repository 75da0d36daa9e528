"""Emits products by matrices in blocks or encoded rows, and gathers of rows, as they are stored."""

from dataclasses import replace

from tightship._core import NativeKernel
from tightship.engine.lower.native.indexed import INDICES
from tightship.engine.lower.passes.block_weights import weights_by_channels
from tightship.engine.lower.passes.blocks import Blocks, BlockWeights, EncodedRows
from tightship.engine.lower.passes.dequantized import Dequantized
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.fused_nodes import take_bias
from tightship.graph import DType, Node, element_count
from tightship.graph.row_codes import HALVES

ITEM_BYTES = 4
SCALES = frozenset({DType.FLOAT32, DType.FLOAT16})
NAMES = {"exact": "block_product", "int8": "block_product_int8"}
"""Names of the implementation by mode."""
ENCODED = {"exact": "encoded_product", "int8": "encoded_product_int8"}
"""Likewise of products by encoded rows, and of what makes the kernels."""


def block_product(builder: Builder, node: Node) -> tuple[Node, ...] | None:
    """Emit a product by a constant matrix in blocks.

    Returns:
        Nodes fused into it that remain to be emitted; None if the kernel does not cover it.
    """
    if node.domain or node.operator not in ("MatMul", "Gemm") or not builder.options.use_native:
        return None
    weights = _weights(builder, node.inputs[1], is_turned=not _is_transposed(node))
    if weights is None or not _is_plain(builder, node) or not _is_planned(builder, node):
        return None
    rows, depth = _lengths(weights)
    head, bias = _with_bias(builder, node, rows)
    plain = replace(head, fused=())
    count = element_count(builder.value(node.inputs[0]).static_shape[:-1])
    source = builder.dense(node.inputs[0])
    reads = [source, *builder.records.weights.stored(node.inputs[1], weights.constants)]
    if bias:
        reads.append(builder.dense(bias))
    target = builder.output(plain.outputs[0])
    mode = _mode(weights, rounds=builder.options.rounds_activations)
    made = _product_kernel(weights, [count, depth, rows], mode, has_bias=bool(bias))
    builder.native(plain, made, reads, [target])
    return head.fused


def _mode(weights: Blocks | EncodedRows, *, rounds: bool) -> str:
    """Return the mode of a product; rows of halves have no blocks to round activations by."""
    if isinstance(weights, EncodedRows):
        return "int8" if rounds and weights.type not in HALVES else "exact"
    return "int8" if rounds else weights.mode


def _product_kernel(
    weights: Blocks | EncodedRows, lengths: list[int], mode: str, *, has_bias: bool
) -> tuple[str, NativeKernel]:
    """Return the kernel of a product of `[rows, depth, columns]`, and the name of its step."""
    row_bytes = lengths[1] * ITEM_BYTES, lengths[2] * ITEM_BYTES
    if isinstance(weights, EncodedRows):
        name = ENCODED[mode]
        make = getattr(NativeKernel, name)
        return name, make(lengths, weights.type, has_bias, row_bytes)
    kernel = NativeKernel.block_product(lengths, _format(weights), has_bias, mode, row_bytes)
    return NAMES[mode], kernel


def _lengths(weights: Blocks | EncodedRows) -> tuple[int, int]:
    """Return the rows of a matrix, and the elements of a row."""
    form = weights if isinstance(weights, EncodedRows) else weights.form
    return form.rows, form.depth


def block_gather(builder: Builder, node: Node) -> bool:
    """Emit a Gather of rows of a constant matrix in blocks."""
    if node.domain or node.operator != "Gather" or node.fused or not builder.options.use_native:
        return False
    table, name = node.inputs
    axis, indices = node.attributes.get("axis", 0), builder.value(name)
    blocks = _weights(builder, table, is_turned=False)
    if blocks is None or axis not in (0, -2) or indices.dtype not in INDICES:
        return False
    if not indices.is_static or not _is_planned(builder, node):
        return False
    lengths, count = _lengths(blocks), element_count(indices.static_shape)
    reads = [*builder.records.weights.stored(table, blocks.constants), builder.dense(name)]
    target = builder.output(node.outputs[0])
    chosen, row_bytes = (reads[-1].dtype.itemsize, count), lengths[1] * ITEM_BYTES
    if isinstance(blocks, EncodedRows):
        kind = "encoded_gather"
        kernel = NativeKernel.encoded_gather(node.name, chosen, lengths, blocks.type, row_bytes)
    else:
        kind = "block_gather"
        kernel = NativeKernel.block_gather(
            node.name, chosen, lengths, _format(blocks), row_bytes, zeros_if_outside=False
        )
    builder.native(node, (kind, kernel), reads, [target])
    return True


def _weights(builder: Builder, name: str, *, is_turned: bool) -> Blocks | EncodedRows | None:
    """Return the operands of a constant matrix in blocks, if kernels read it in this order."""
    constant = builder.constant(name)
    if isinstance(constant, Dequantized):
        constant = weights_by_channels(constant)
    if not isinstance(constant, BlockWeights) or constant.blocks is None:
        return None
    blocks = constant.blocks
    if constant.is_turned != is_turned or constant.dtype is not DType.FLOAT32:
        return None
    if 0 in constant.shape or isinstance(blocks, EncodedRows):
        return None if 0 in constant.shape else blocks
    zeros = DType.UINT8 if blocks.zeros is None else blocks.zeros.dtype
    is_read = blocks.scales.dtype in SCALES and zeros in (DType.UINT8, blocks.scales.dtype)
    return blocks if is_read else None


def _is_transposed(node: Node) -> bool:
    return node.operator == "Gemm" and bool(node.attributes.get("transB", 0))


def _is_plain(builder: Builder, node: Node) -> bool:
    """Whether a product is rows times the matrix, plus at most a constant row."""
    if len(builder.value(node.inputs[0]).shape or ()) < 2:
        return False
    if node.operator == "MatMul":
        return True
    attributes = node.attributes
    if attributes.get("transA", 0) or attributes.get("alpha", 1.0) != 1.0:
        return False
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if not bias:
        return True
    columns = (builder.value(node.outputs[0]).shape or ())[-1:]
    constant = builder.constant(bias)
    return attributes.get("beta", 1.0) == 1.0 and constant is not None and constant.shape == columns


def _is_planned(builder: Builder, node: Node) -> bool:
    """Whether operands are float32 of known shapes, or indices, in planned bytes."""
    parts = (node, *node.fused)
    values = [builder.value(part.outputs[0]) for part in parts]
    source = builder.value(node.inputs[0])
    return (
        all(v.is_static and v.dtype is DType.FLOAT32 and 0 not in v.static_shape for v in values)
        and (source.is_static and source.dtype is DType.FLOAT32)
        and all(builder.home_is_planned(name) for name in node.reads)
    )


def _with_bias(builder: Builder, node: Node, columns: int) -> tuple[Node, str]:
    """Separate a constant row that is added to a product; return the node and its bias."""
    if node.operator == "Gemm" and len(node.inputs) > 2 and node.inputs[2]:
        return node, node.inputs[2]
    return take_bias(builder, node, columns)


def _format(blocks: Blocks) -> NativeKernel.BlockFormat:
    form, zeros = blocks.form, blocks.zeros
    scale = blocks.scales.dtype.itemsize
    scales = (scale, 0) if blocks.is_by_row else (form.blocks * scale, scale)
    kind, apart = "middle", (0, 0)
    if zeros is not None and zeros.dtype is DType.UINT8:
        kind, apart = "packed", (zeros.shape[1], 1)
    elif zeros is not None:
        kind, apart = "floats", scales
    strides = [form.row_bytes, form.block * form.bits // 8, *scales, *apart]
    return NativeKernel.BlockFormat(
        form.bits, form.block, form.is_signed, blocks.scales.dtype.value, kind, strides
    )
