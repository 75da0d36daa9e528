"""Emits reductions along any axes: one kernel over strides."""

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.kernels.numbers import is_integer
from tightship.engine.kernels.reduction import reduced_axes
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.graph import Node, element_count


def reduction(builder: Builder, node: Node) -> None:
    """Emit one kernel that reads the operand in its layout; sums are float64 or 64-bit integers."""
    context = site_of(builder, node)
    shape, dtype = context.shape(0), context.input(0).dtype
    require(dtype == context.output().dtype)
    axes = reduced_axes(context)
    require(element_count(shape) > 0 or not is_integer(context.dtype(0)))
    require(context.dtype(0).kind != "b" or node.operator in ("ReduceMax", "ReduceMin"))
    assert dtype is not None
    covered(NativeKernel.reduction(node.operator, dtype.value, ([], [], []), ([], [])))
    source = plain(builder, node.inputs[0])
    target = builder.output(node.outputs[0])
    strides = byte_strides(source)
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    stay = [axis for axis in range(len(shape)) if axis not in axes]
    wide = _row_major([shape[axis] for axis in stay], dtype.itemsize)
    place = dict(zip(stay, wide, strict=True))
    kept = [axis for axis in order if axis in place]
    gone = [axis for axis in order if axis not in place]
    kernel = covered(
        NativeKernel.reduction(
            node.operator,
            dtype.value,
            (
                [shape[axis] for axis in kept],
                [strides[axis] for axis in kept],
                [place[axis] for axis in kept],
            ),
            ([shape[axis] for axis in gone], [strides[axis] for axis in gone]),
        )
    )
    builder.native(node, (node.operator, kernel), [source], [target])


def _row_major(shape: list[int], item_bytes: int) -> list[int]:
    strides = [item_bytes] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return strides
