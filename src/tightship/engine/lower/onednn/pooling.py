"""Emits pooling, which keeps the layout of its operand."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.lower.onednn.choose import first_fast
from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.window import Window, window_of
from tightship.graph import Node


def pooling(builder: Builder, node: Node) -> None:
    """Emit MaxPool without indices, or AveragePool."""
    require(len(node.writes) == 1 and not node.attributes.get("storage_order", 0))
    kernel = covered(node.attributes.get("kernel_shape"))
    before = builder.value(node.inputs[0]).static_shape
    after = builder.value(node.outputs[0]).static_shape
    assert isinstance(kernel, tuple)
    window = window_of(node, tuple(int(k) for k in kernel), before[2:], after[2:])
    if node.operator == "MaxPool":
        _emit(builder, node, "max", window)
        return
    counts_padding = bool(node.attributes.get("count_include_pad", 0))
    declared = node.attributes.get("pads", (0,) * (2 * len(window.kernel)))
    assert isinstance(declared, tuple)
    given = tuple(int(pad) for pad in declared[len(window.kernel) :])
    beyond = any(end > pad for end, pad in zip(window.end, given, strict=True))
    require(not (counts_padding and beyond))
    algorithm = "average_with_padding" if counts_padding else "average"
    _emit(builder, node, algorithm, window)


def quantized_pooling(builder: Builder, node: Node) -> None:
    """Emit MaxPool of 8-bit integers."""
    source = builder.home(node.inputs[0])
    require(source.dtype in NARROW and source.desc is not None)
    pooling(builder, node)


def global_pooling(builder: Builder, node: Node) -> None:
    """Emit GlobalAveragePool or GlobalMaxPool, with one window over all pixels."""
    kernel = builder.value(node.inputs[0]).static_shape[2:]
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    algorithm = "max" if node.operator == "GlobalMaxPool" else "average"
    _emit(builder, node, algorithm, Window(kernel, ones, ones, zeros, zeros))


def _emit(builder: Builder, node: Node, algorithm: str, window: Window) -> None:
    shape = builder.value(node.outputs[0]).static_shape
    pads = zip((*window.begin, *window.end), window.kernel * 2, strict=True)
    require(len(shape) in (3, 4, 5) and all(pad < length for pad, length in pads))
    source = builder.home(node.inputs[0])
    free, kernel = MemoryDesc.any(list(shape), source.dtype.value), list(window.kernel)
    layout, desc = first_fast(
        builder.candidate_layouts(source),
        lambda layout: PrimitiveDesc.pooling(
            algorithm, layout, free, kernel, window.parts, Attributes()
        ),
    )
    reads = [(SRC, builder.in_layout(node.inputs[0], layout))]
    builder.primitive(node, desc, reads, [builder.output(node.outputs[0], desc.operand(DST))])
