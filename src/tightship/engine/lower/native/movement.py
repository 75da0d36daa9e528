"""Emits operators that copy elements between positions known before the run."""

from tightship.engine.kernels.kernel_context import axis_of, require
from tightship.engine.kernels.movement import taken
from tightship.engine.lower.native.part import Part, move, source_part, target_part
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import image_layout, plain, site_of
from tightship.engine.lower.steps.views import same_bytes
from tightship.graph import Node


def transpose(builder: Builder, node: Node) -> None:
    """Copy from permuted strides, or make a view if only axes of length one move."""
    context = site_of(builder, node)
    order = context.integers("perm") or tuple(range(len(context.shape(0))))[::-1]
    long = [axis for axis in order if context.shape(0)[axis] != 1]
    if long != sorted(long) or not same_bytes(builder, node):
        source, target = source_part(builder, node), target_part(builder, node)
        move(builder, node, [(source.permuted(order), target)])


def slice_emitter(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    walks = [part.indices(n) for part, n in zip(taken(context), context.shape(0), strict=True)]
    if context.shape(0) == context.output_shape() and all(step > 0 for _, _, step in walks):
        require(same_bytes(builder, node))
        return
    source = source_part(builder, node)
    layout = image_layout(source.operand, context.output_shape())
    for axis, (start, _, step) in enumerate(walks):
        source = source.cut(axis, start, context.output_shape()[axis], step)
    move(builder, node, [(source, Part.whole(builder.output(node.outputs[0], layout)))])


def split(builder: Builder, node: Node) -> None:
    """Split by the lengths of the outputs, none of which may be left out."""
    context = site_of(builder, node)
    axis = axis_of(context.integer("axis", 0), len(context.shape(0)))
    lengths = [context.output_shape(index)[axis] for index in range(len(context.outputs))]
    source, start, pairs = source_part(builder, node), 0, []
    for index, length in enumerate(lengths):
        part = source.cut(axis, start, length)
        pairs.append((part, target_part(builder, node, index)))
        start += length
    move(builder, node, pairs)


def concat(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    axis = axis_of(context.integer("axis", 1), len(context.output_shape()))
    if len(node.inputs) == 1:
        require(same_bytes(builder, node))
        return
    sources = [plain(builder, name) for name in node.inputs]
    target, start, pairs = target_part(builder, node), 0, []
    for source in sources:
        length = source.shape[axis]
        pairs.append((Part.whole(source), target.cut(axis, start, length)))
        start += length
    move(builder, node, pairs)


def expand(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    if context.shape(0) == context.output_shape():
        require(same_bytes(builder, node))
        return
    shape = context.output_shape()
    source = source_part(builder, node)
    for _ in range(len(shape) - len(source.shape)):
        source = source.repeated(0, 1)
    for axis, length in enumerate(shape):
        if source.shape[axis] != length:
            source = source.cut(axis, 0, length, 0)
    move(builder, node, [(source, target_part(builder, node))])


def tile(builder: Builder, node: Node) -> None:
    """Repeat as often as the two shapes imply."""
    context = site_of(builder, node)
    if context.shape(0) == context.output_shape():
        require(same_bytes(builder, node))
        return
    source, target = source_part(builder, node), target_part(builder, node)
    for axis in reversed(range(len(source.shape))):
        short = source.shape[axis]
        times = target.shape[axis] // max(short, 1)
        source = source.repeated(axis, times)
        target = target.unfolded(axis, (times, short))
    move(builder, node, [(source, target)])


def depth_to_space(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    block = context.integer("blocksize", 1)
    channels = context.shape(0)[1] // (block * block)
    source = source_part(builder, node)
    if context.text("mode", "DCR") == "DCR":
        source = source.unfolded(1, (block, block, channels)).permuted((0, 3, 4, 1, 5, 2))
    else:
        source = source.unfolded(1, (channels, block, block)).permuted((0, 1, 4, 2, 5, 3))
    target = target_part(builder, node)
    target = target.unfolded(3, (target.shape[3] // block, block))
    target = target.unfolded(2, (target.shape[2] // block, block))
    move(builder, node, [(source, target)])


def space_to_depth(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    block = context.integer("blocksize", 1)
    channels = context.shape(0)[1]
    source = source_part(builder, node)
    source = source.unfolded(3, (source.shape[3] // block, block))
    source = source.unfolded(2, (source.shape[2] // block, block))
    target = target_part(builder, node)
    if context.text("mode", "DCR") == "DCR":
        target = target.unfolded(1, (block, block, channels))
        source = source.permuted((0, 3, 5, 1, 2, 4))
    else:
        target = target.unfolded(1, (channels, block, block))
        source = source.permuted((0, 1, 3, 5, 2, 4))
    move(builder, node, [(source, target)])
