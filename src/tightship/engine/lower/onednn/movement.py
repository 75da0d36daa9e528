"""Emits operators that move elements: concatenation, transposition, channel shuffle."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.layouts import channels_last, row_major
from tightship.graph import Node, element_count

MULTIPLE_SRC = 1024
SHORT_RUN = 16
"""Most elements of a run that the library copies slower than a native kernel."""


def concat(builder: Builder, node: Node) -> None:
    """Emit Concat in the operands' layout; if they differ, in one that suits images."""
    axis, shape = node.integer("axis", 1), builder.value(node.outputs[0]).static_shape
    own = [builder.home(name).desc for name in node.inputs]
    layouts = [layout for layout in own if layout is not None]
    require(len(layouts) == len(own))
    if len({layout.format for layout in layouts}) == 1:
        joined = MemoryDesc.any(list(shape))
    else:
        common = channels_last if _is_spatial(layouts) else row_major
        layouts = [common(builder.value(name).static_shape) for name in node.inputs]
        joined = common(shape)
    axis %= len(shape)
    require(not (builder.options.use_native and _has_short_runs(layouts, axis)))
    desc = covered(fast(lambda: PrimitiveDesc.concat(layouts, joined, axis, Attributes())))
    reads = [
        (MULTIPLE_SRC + index, builder.in_layout(name, layout))
        for index, (name, layout) in enumerate(zip(node.inputs, layouts, strict=True))
    ]
    target = builder.output(node.outputs[0], desc.operand(DST))
    builder.primitive(node, desc, reads, [target])


def _has_short_runs(layouts: list[MemoryDesc], axis: int) -> bool:
    """Whether many runs of a few row-major elements are copied, which a native kernel does faster.

    For each run the library calls a function; a copy of ours takes 0.25 of the time for runs of 8
    bytes, 0.75 for 64.
    """
    return element_count(layouts[0].dims[:axis]) > 1 and all(
        layout == row_major(layout.dims) and element_count(layout.dims[axis:]) <= SHORT_RUN
        for layout in layouts
    )


def _is_spatial(layouts: list[MemoryDesc]) -> bool:
    """Whether a convolution or pooling has chosen one of the layouts."""
    return any(not layout.is_plain or layout == channels_last(layout.dims) for layout in layouts)


def transpose(builder: Builder, node: Node) -> None:
    """Make a Transpose a view: the same bytes under permuted strides."""
    source = builder.home(node.inputs[0])
    rank = len(source.shape)
    permutation = node.attributes.get("perm", tuple(reversed(range(rank))))
    if source.desc is None or not source.desc.is_plain:
        source = builder.dense(node.inputs[0])
    assert source.desc is not None
    assert isinstance(permutation, tuple)
    if source.desc.offset_bytes:
        order = sorted(range(rank), key=lambda axis: permutation[axis])
        builder.view(node.outputs[0], source, source.desc.permuted(order))
        return
    strides = source.desc.strides
    dims = [source.shape[int(axis)] for axis in permutation]
    permuted = [strides[int(axis)] for axis in permutation]
    desc = MemoryDesc(dims, "float32", _settled(dims, permuted))
    builder.view(node.outputs[0], source, desc)


def _settled(dims: list[int], strides: list[int]) -> list[int]:
    """Set the strides of axes of length one to those of row-major order.

    They do not affect addresses, but oneDNN compares them, and takes one that is larger than its
    neighbours' for the outermost axis when it broadcasts.
    """
    settled = list(strides)
    for axis in reversed(range(len(dims))):
        if dims[axis] == 1:
            inner = axis + 1 < len(dims)
            settled[axis] = settled[axis + 1] * dims[axis + 1] if inner else 1
    return settled


def channel_shuffle(builder: Builder, node: Node) -> None:
    """Emit a channel shuffle in the operand's layout, as a reorder between two views."""
    groups = node.integer("groups")
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
    desc = PrimitiveDesc.reorder(taken, dealt, Attributes())
    target = builder.output(node.outputs[0], source.desc)
    seen = target.under(dealt)
    builder.primitive(node, desc, [(SRC, source.under(taken))], [seen])
