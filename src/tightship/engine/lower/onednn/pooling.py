"""Emits pooling, which keeps the layout of its operand."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.window import Window, window_of
from tightship.graph import Node


def pooling(builder: Builder, node: Node) -> bool:
    """Emit MaxPool without indices, or AveragePool."""
    kernel = node.attributes.get("kernel_shape")
    if len(node.writes) != 1 or node.attributes.get("storage_order", 0) or kernel is None:
        return False
    before = builder.value(node.inputs[0]).static_shape
    after = builder.value(node.outputs[0]).static_shape
    assert isinstance(kernel, tuple)
    window = window_of(node, tuple(int(k) for k in kernel), before[2:], after[2:])
    if node.operator == "MaxPool":
        return _emit(builder, node, "max", window)
    counts_padding = bool(node.attributes.get("count_include_pad", 0))
    declared = node.attributes.get("pads", (0,) * (2 * len(window.kernel)))
    assert isinstance(declared, tuple)
    given = tuple(int(pad) for pad in declared[len(window.kernel) :])
    beyond = any(end > pad for end, pad in zip(window.end, given, strict=True))
    if counts_padding and beyond:
        return False
    algorithm = "average_with_padding" if counts_padding else "average"
    return _emit(builder, node, algorithm, window)


def quantized_pooling(builder: Builder, node: Node) -> bool:
    """Emit MaxPool of 8-bit integers."""
    source = builder.home(node.inputs[0])
    return source.dtype in NARROW and source.desc is not None and pooling(builder, node)


def global_pooling(builder: Builder, node: Node) -> bool:
    """Emit GlobalAveragePool or GlobalMaxPool, with one window over all pixels."""
    kernel = builder.value(node.inputs[0]).static_shape[2:]
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    algorithm = "max" if node.operator == "GlobalMaxPool" else "average"
    return _emit(builder, node, algorithm, Window(kernel, ones, ones, zeros, zeros))


def _emit(builder: Builder, node: Node, algorithm: str, window: Window) -> bool:
    shape = builder.value(node.outputs[0]).static_shape
    if len(shape) not in (3, 4, 5) or any(
        pad >= k for pad, k in zip((*window.begin, *window.end), window.kernel * 2, strict=True)
    ):
        return False
    source = builder.home(node.inputs[0])
    for layout in builder.candidate_layouts(source):
        desc = fast(
            lambda layout=layout: PrimitiveDesc.pooling(  # type: ignore[misc]
                algorithm,
                layout,
                MemoryDesc.any(list(shape), source.dtype.value),
                list(window.kernel),
                window.parts,
                Attributes(),
            )
        )
        if desc is not None:
            reads = [(SRC, builder.in_layout(node.inputs[0], layout))]
            target = builder.output(node.outputs[0], desc.operand(DST))
            builder.primitive(node, desc, reads, [target])
            return True
    return False
