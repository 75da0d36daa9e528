"""Operators that move elements: concatenation, transposition, channel shuffle."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, SRC, Builder
from tightship.engine.lower.onednn.choose import fast
from tightship.graph import Node

MULTIPLE_SRC = 1024


def concat(builder: Builder, node: Node) -> bool:
    """Concat in the layout of its first operand, or whatever the primitive makes of all."""
    axis = node.attributes.get("axis", 1)
    shape = builder.value(node.outputs[0]).static_shape
    assert isinstance(axis, int)
    homes = [builder.home(name) for name in node.inputs]
    layouts = [home.desc for home in homes if home.desc is not None]
    if any(0 in home.shape for home in homes) or len(layouts) != len(homes):
        return False
    desc = fast(
        lambda: PrimitiveDesc.concat(
            layouts, MemoryDesc.any(list(shape)), axis % len(shape), Attributes()
        )
    )
    if desc is None:
        return False
    reads = [(MULTIPLE_SRC + index, home) for index, home in enumerate(homes)]
    builder.primitive(node, desc, reads, [builder.output(node.outputs[0], desc.operand(DST))])
    return True


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
    """Channels dealt out to groups, in the layout they are in."""
    groups = node.attributes["groups"]
    assert isinstance(groups, int)
    source = builder.home(node.inputs[0])
    for layout in builder.candidate_layouts(source):
        desc = fast(
            lambda layout=layout: PrimitiveDesc.shuffle(  # type: ignore[misc]
                layout, layout, 1, groups, Attributes()
            )
        )
        if desc is not None:
            reads = [(SRC, builder.in_layout(node.inputs[0], layout))]
            builder.primitive(node, desc, reads, [builder.output(node.outputs[0], layout)])
            return True
    return False
