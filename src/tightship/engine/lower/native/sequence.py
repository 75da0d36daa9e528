"""Operators along the steps of sequences."""

from collections.abc import Callable, Mapping

from tightship._core import NativeKernel
from tightship.engine.kernels.site import Site, axis_of, require
from tightship.engine.lower.builder import Builder
from tightship.engine.lower.native.layout import byte_strides, plain, site_of
from tightship.engine.program import Operand
from tightship.graph import DType, Node, element_count


def _reverse_sequence(builder: Builder, node: Node) -> bool:
    site = site_of(builder, node)
    shape = site.shape(0)
    batch, time = site.integer("batch_axis", 1), site.integer("time_axis", 0)
    require({batch, time} == {0, 1} and site.input(1).dtype is DType.INT64)
    row_bytes = element_count(shape[2:]) * site.dtype(0).itemsize
    kernel = NativeKernel.reverse_sequences(
        node.name, (shape[batch], shape[time], row_bytes), time == 0
    )
    reads = [builder.dense(name) for name in node.inputs]
    builder.native(node, ("reverse", kernel), reads, [builder.output(node.outputs[0])])
    return True


def _tensor_scatter(builder: Builder, node: Node) -> bool:
    """Steps appended to a cache, in its own bytes where nothing else reads them."""
    site = site_of(builder, node)
    shape, new = site.shape(0), site.shape(1)
    axis = axis_of(site.integer("axis", -2), len(shape))
    require(axis > 0 and 0 < new[axis] <= shape[axis])
    row_bytes = element_count(shape[axis + 1 :]) * site.dtype(0).itemsize
    sizes = (shape[0], element_count(shape[1:axis]), shape[axis], new[axis], row_bytes)
    is_circular = site.text("mode", "linear") == "circular"
    kernel = NativeKernel.append(node.name, sizes, site.has_input(2), is_circular)
    reads = [builder.dense(name) for name in node.inputs if name]
    target = builder.output(node.outputs[0])
    taken_over = [(target, reads[0])] if site.read_once(0) else []
    builder.native(node, ("append", kernel), reads, [target], in_place=taken_over)
    return True


def _rotary_embedding(builder: Builder, node: Node) -> bool:
    """Of (batch, heads, steps, row), or of (batch, steps, heads by row)."""
    site = site_of(builder, node)
    shape = site.shape(0)
    require(site.input(0).dtype is DType.FLOAT32 and len(shape) in (3, 4) and 0 not in shape)
    heads = shape[1] if len(shape) == 4 else site.integer("num_heads", 0)
    require(heads > 0)
    row = shape[3] if len(shape) == 4 else shape[2] // heads
    pairs = (site.integer("rotary_embedding_dim", 0) or row) // 2
    has_positions = site.has_input(3)
    require(site.shape(1)[-1] == pairs and len(site.shape(1)) == (2 if has_positions else 3))
    require(not has_positions or site.input(3).dtype is DType.INT64)
    x = plain(builder, node.inputs[0])
    reads = [x, *(builder.dense(name) for name in node.inputs[1:] if name)]
    target = builder.output(node.outputs[0])
    around = shape[:3] if len(shape) == 4 else (shape[0], shape[1], heads)
    strides = (
        _around(byte_strides(x), row),
        _around(byte_strides(target), row),
        _angle_strides(reads[3] if has_positions else reads[1], around, len(shape)),
    )
    cache_rows = site.shape(1)[0] if has_positions else 0
    sizes = (pairs, row, byte_strides(x)[-1], cache_rows)
    interleaved = bool(site.integer("interleaved", 0))
    kernel = NativeKernel.rotary_embedding(node.name, interleaved, sizes, list(around), strides)
    taken_over = _taken_over(site, x, target)
    builder.native(node, ("rotary", kernel), reads, [target], in_place=taken_over)
    return True


def _taken_over(site: Site, x: Operand, target: Operand) -> list[tuple[Operand, Operand]]:
    is_alike = byte_strides(x) == byte_strides(target)
    return [(target, x)] if is_alike and site.read_once(0) else []


def _around(strides: list[int], row: int) -> list[int]:
    """Strides of what is around rows; heads may lie side by side in one axis with them."""
    return strides[:3] if len(strides) == 4 else [*strides[:2], row * strides[2]]


def _angle_strides(angles: Operand, around: tuple[int, ...], rank: int) -> list[int]:
    """Strides of positions, or of a cache for each batch and step, under what is around rows."""
    batch, step = byte_strides(angles)[:2]
    batch = batch if angles.shape[0] > 1 else 0
    assert angles.shape[1] == around[2 if rank == 4 else 1], (angles, around)
    return [batch, 0, step] if rank == 4 else [batch, step, 0]


SEQUENCE: Mapping[tuple[str, str], Callable[[Builder, Node], bool]] = {
    ("", "ReverseSequence"): _reverse_sequence,
    ("", "RotaryEmbedding"): _rotary_embedding,
    ("", "TensorScatter"): _tensor_scatter,
}
