"""Emits rotary position embeddings over operands in their own layouts.

Pairs are halves of a row, or neighbours in it.
"""

from collections.abc import Sequence
from functools import partial

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import (
    broadcast_strides,
    byte_strides,
    plain,
    site_of,
)
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node


def rotary(builder: Builder, node: Node) -> None:
    """Emit the recognized pattern of exporters; tables have one entry for each pair or element."""
    source, *tables = (plain(builder, name) for name in node.inputs)
    target = builder.output(node.outputs[0])
    operands = (source, *tables, target)
    *outer, width = source.shape
    is_interleaved = bool(node.attributes["interleaved"])
    strides = [broadcast_strides(each, [*outer, each.shape[-1]])[:-1] for each in operands]
    items = [byte_strides(each)[-1] for each in operands]
    paired = [each.shape[-1] == width for each in operands]
    kernel = partial(
        NativeKernel.rotary,
        shape=outer,
        sizes=(width // 2, 0, 0),
        strides=strides,
        along=(items, *_along(items, paired, width // 2, is_interleaved=is_interleaved)),
    )
    builder.native(node, ("rotary", kernel), [source, *tables], [target])


def _along(
    items: Sequence[int], paired: Sequence[bool], pairs: int, *, is_interleaved: bool
) -> tuple[list[int], list[int]]:
    """Return bytes between pairs and within a pair, by operand; some have one element a pair."""
    steps = [
        item * (2 if is_interleaved and has_both else 1)
        for item, has_both in zip(items, paired, strict=True)
    ]
    apart = 1 if is_interleaved else pairs
    partners = [
        item * apart if has_both else 0 for item, has_both in zip(items, paired, strict=True)
    ]
    return steps, partners


def rotary_embedding(builder: Builder, node: Node) -> None:
    """Emit ONNX's operator, of (batch, heads, steps, row), or of (batch, steps, heads * row)."""
    context = site_of(builder, node)
    shape = context.shape(0)
    require(context.input(0).dtype is DType.FLOAT32 and len(shape) in (3, 4) and 0 not in shape)
    heads = shape[1] if len(shape) == 4 else context.integer("num_heads", 0)
    require(heads > 0)
    row = shape[3] if len(shape) == 4 else shape[2] // heads
    pairs = (context.integer("rotary_embedding_dim", 0) or row) // 2
    has_positions = context.has_input(3)
    require(context.shape(1)[-1] == pairs and len(context.shape(1)) == (2 if has_positions else 3))
    require(not has_positions or context.input(3).dtype is DType.INT64)
    x = plain(builder, node.inputs[0])
    reads = [x, *(builder.dense(name) for name in node.inputs[1:] if name)]
    target = builder.output(node.outputs[0])
    around = shape[:3] if len(shape) == 4 else (shape[0], shape[1], heads)
    angles = _angle_strides(reads[3] if has_positions else reads[1], around, len(shape))
    items = [byte_strides(each)[-1] for each in (*reads[:3], target)]
    is_interleaved = bool(context.integer("interleaved", 0))
    paired = True, False, False, True
    kernel = partial(
        NativeKernel.rotary,
        shape=around,
        sizes=(pairs, row - 2 * pairs, context.shape(1)[0] if has_positions else 0),
        strides=[_around(x, row), angles, angles, _around(target, row)],
        along=(items, *_along(items, paired, pairs, is_interleaved=is_interleaved)),
    )
    taken_over = _taken_over(context, x, target)
    builder.native(node, ("rotary", kernel), reads, [target], in_place=taken_over)


def _taken_over(
    context: KernelContext, x: Operand, target: Operand
) -> list[tuple[Operand, Operand]]:
    is_alike = byte_strides(x) == byte_strides(target)
    return [(target, x)] if is_alike and context.read_once(0) else []


def _around(operand: Operand, row: int) -> list[int]:
    """Return the strides of the axes around rows; heads may share an axis with the rows."""
    strides = byte_strides(operand)
    return strides[:3] if len(strides) == 4 else [*strides[:2], row * strides[2]]


def _angle_strides(angles: Operand, around: tuple[int, ...], rank: int) -> list[int]:
    """Return the strides of positions, or of a cache by batch and step, over axes around rows."""
    batch, step = byte_strides(angles)[:2]
    batch = batch if angles.shape[0] > 1 else 0
    assert angles.shape[1] == around[2 if rank == 4 else 1], (angles, around)
    return [batch, 0, step] if rank == 4 else [batch, step, 0]
