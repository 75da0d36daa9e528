"""Emits GridSample: images interpolated at positions that the run gives."""

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.kernels.kernel_context import require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import channels_last
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.graph import DType, Node, element_count

MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names before opset 20, and since."""


def grid_sample(builder: Builder, node: Node) -> None:
    """Emit one kernel; the result has channels last if the image has."""
    context = site_of(builder, node)
    shape, positions = context.shape(0), context.output_shape()[2:]
    require(context.input(0).dtype is DType.FLOAT32 and context.input(1).dtype is DType.FLOAT32)
    require(len(shape) in (3, 4, 5) and 0 not in (*shape, *positions))
    source = plain(builder, node.inputs[0])
    steps = [stride // source.dtype.itemsize for stride in byte_strides(source)]
    together = steps[1] == 1 and builder.options.use_onednn
    layout: MemoryDesc | None = channels_last(context.output_shape()) if together else None
    target = builder.output(node.outputs[0], layout)
    out = [stride // target.dtype.itemsize for stride in byte_strides(target)]
    mode = context.text("mode", "linear" if context.version >= 20 else "bilinear")
    kernel = NativeKernel.sample(
        (MODES.get(mode, mode), context.text("padding_mode", "zeros")),
        bool(context.integer("align_corners", 0)),
        (*shape[:2], element_count(positions)),
        list(shape[2:]),
        steps,
        (out[0], out[1], shape[1] if out[1] == 1 and layout is not None else 1),
    )
    reads = [source, builder.dense(node.inputs[1])]
    builder.native(node, ("sample", kernel), reads, [target])
