"""Operators that move elements: concatenation, transposition, channel shuffle."""

from dataclasses import replace

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, SRC, Builder, dense_strides
from tightship.engine.lower.onednn.choose import fast
from tightship.graph import Node

MULTIPLE_SRC = 1024


def concat(builder: Builder, node: Node) -> bool:
    """Concat of operands as they lie; where they differ, in the layout of the largest."""
    axis = node.attributes.get("axis", 1)
    shape = builder.value(node.outputs[0]).static_shape
    assert isinstance(axis, int)
    homes = [builder.home(name) for name in node.inputs]
    own = [home.desc for home in homes if home.desc is not None]
    if len(own) != len(homes):
        return False
    largest = max(homes, key=lambda home: home.size_bytes)
    assert largest.desc is not None
    like_largest = [_like(largest.desc, home.shape) for home in homes]
    for layouts in (own, like_largest):
        desc = fast(
            lambda layouts=layouts: PrimitiveDesc.concat(  # type: ignore[misc]
                layouts, MemoryDesc.any(list(shape)), axis % len(shape), Attributes()
            )
        )
        if desc is not None:
            reads = [
                (MULTIPLE_SRC + index, builder.in_layout(name, layout))
                for index, (name, layout) in enumerate(zip(node.inputs, layouts, strict=True))
            ]
            target = builder.output(node.outputs[0], desc.operand(DST))
            builder.primitive(node, desc, reads, [target])
            return True
    return False


def _like(layout: MemoryDesc, shape: tuple[int, ...]) -> MemoryDesc:
    """A dense layout of `shape` with its axes in the order that `layout` stores them."""
    strides = layout.strides
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    dense = dense_strides([shape[axis] for axis in order])
    return MemoryDesc(list(shape), "float32", [dense[order.index(a)] for a in range(len(shape))])


def transpose(builder: Builder, node: Node) -> bool:
    """Transpose moves nothing: the same bytes are read under permuted strides."""
    source = builder.home(node.inputs[0])
    rank = len(source.shape)
    permutation = node.attributes.get("perm", tuple(reversed(range(rank))))
    if source.desc is None or not source.desc.is_plain:
        source = builder.dense(node.inputs[0])
    assert source.desc is not None
    assert isinstance(permutation, tuple)
    strides = source.desc.strides
    dims = [source.shape[int(axis)] for axis in permutation]
    desc = MemoryDesc(dims, "float32", [strides[int(axis)] for axis in permutation])
    builder.view(node.outputs[0], source, desc)
    return True


def channel_shuffle(builder: Builder, node: Node) -> bool:
    """Channels dealt out to groups, in the layout they are in: a reorder between two views."""
    groups = node.attributes["groups"]
    assert isinstance(groups, int)
    source = builder.home(node.inputs[0])
    if source.desc is None or not source.desc.is_plain:
        source = builder.dense(node.inputs[0])
    assert source.desc is not None
    batch, channels, *space = source.shape
    each = channels // groups
    step = source.desc.strides
    dims = [batch, each, groups, *space]
    taken = MemoryDesc(dims, "float32", [step[0], step[1], step[1] * each, *step[2:]])
    dealt = MemoryDesc(dims, "float32", [step[0], step[1] * groups, step[1], *step[2:]])
    desc = fast(lambda: PrimitiveDesc.reorder(taken, dealt, Attributes()))
    if desc is None:
        return False
    target = builder.output(node.outputs[0], source.desc)
    seen = replace(target, desc=dealt)
    builder.primitive(node, desc, [(SRC, replace(source, desc=taken))], [seen])
    return True
