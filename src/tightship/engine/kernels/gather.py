"""Operators that read or write at positions of an index tensor."""

from collections.abc import Callable, Mapping

import numpy as np

from tightship.engine.kernels.generate import count_up
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, axis_of, require
from tightship.engine.kernels.numbers import is_number
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.errors import InputError
from tightship.graph import element_count

REDUCTIONS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
}


def _check(name: str, indices: Array, length: int) -> None:
    """Check indices against the length of a dimension; negative ones count from its end.

    Raises:
        InputError: An index is out of range.
    """
    if not indices.size:
        return
    least, greatest = int(indices.min()), int(indices.max())
    if least < -length or greatest >= length:
        raise InputError(
            f"Node `{name}` indexes a dimension of {length} with elements in "
            f"[{least}, {greatest}]; they must be in [{-length}, {length - 1}]."
        )


def gather_kernel(context: KernelContext) -> Kernel:
    name, shape, indices = context.node.name, context.shape(0), context.shape(1)
    axis = axis_of(context.integer("axis", 0), len(shape))
    is_wide = context.dtype(1) == np.int64
    layout = ScratchLayout()
    wide = layout.slot(np.int64, (0,) if is_wide else indices)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        data, index = inputs
        _check(name, index, shape[axis])
        if not is_wide:
            index = wide.of(scratch)
            np.copyto(index, inputs[1])
        np.take(data, index, axis=axis, out=outputs[0], mode="wrap")

    return Kernel("Gather", run, layout.size_bytes)


Locate = Callable[[Array, Array | None], Array]
"""Function `locate(indices, scratch)` that returns flat positions in the data, in scratch."""


def _along_axis(context: KernelContext, layout: ScratchLayout) -> Locate:
    """Let each index replace one coordinate of its own position (GatherElements and similar)."""
    name, shape, indices = context.node.name, context.shape(0), context.shape(1)
    axis = axis_of(context.integer("axis", 0), len(shape))
    strides = [element_count(shape[a + 1 :]) for a in range(len(shape))]
    others = [a for a in range(len(shape)) if a != axis and indices[a] > 1]
    place = layout.slot(np.int64, indices)
    count = layout.slot(np.int64, (max((indices[a] for a in others), default=0),))

    def locate(index: Array, scratch: Array | None) -> Array:
        _check(name, index, shape[axis])
        places = place.of(scratch)
        np.remainder(index, max(shape[axis], 1), out=places)
        np.multiply(places, strides[axis], out=places)
        for other in others:
            steps = count.of(scratch)[: indices[other]]
            count_up(steps, strides[other])
            np.add(places, steps.reshape((-1,) + (1,) * (len(shape) - other - 1)), out=places)
        return places.reshape(-1)

    return locate


def _by_tuples(context: KernelContext, layout: ScratchLayout) -> Locate:
    """Let the last axis of the indices hold leading coordinates (GatherND, ScatterND)."""
    name, shape, indices = context.node.name, context.shape(0), context.shape(1)
    batch = context.integer("batch_dims", 0)
    depth = indices[-1]
    lengths = shape[batch : batch + depth]
    batches = element_count(shape[:batch])
    tuples = (batches, element_count(indices[batch:-1]))
    place, term = layout.slot(np.int64, tuples), layout.slot(np.int64, tuples)
    start = layout.slot(np.int64, (batches,))

    def locate(index: Array, scratch: Array | None) -> Array:
        places, terms, starts = place.of(scratch), term.of(scratch), start.of(scratch)
        coordinates = index.reshape((*tuples, depth))
        count_up(starts, element_count(lengths))
        np.copyto(places, starts.reshape(-1, 1))
        for axis, length in enumerate(lengths):
            _check(name, coordinates[..., axis], length)
            np.remainder(coordinates[..., axis], max(length, 1), out=terms)
            np.multiply(terms, element_count(lengths[axis + 1 :]), out=terms)
            np.add(places, terms, out=places)
        return places.reshape(-1)

    return locate


def gather_elements(context: KernelContext) -> Kernel:
    layout = ScratchLayout()
    locate = _along_axis(context, layout)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        places = locate(inputs[1], scratch)
        np.take(inputs[0].reshape(-1), places, out=outputs[0].reshape(-1), mode="wrap")

    return Kernel("GatherElements", run, layout.size_bytes)


def gather_tuples(context: KernelContext) -> Kernel:
    layout = ScratchLayout()
    locate = _by_tuples(context, layout)
    rows = _row_shape(context, context.integer("batch_dims", 0))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        places = locate(inputs[1], scratch)
        target = outputs[0].reshape((places.size, rows[1]))
        np.take(inputs[0].reshape(rows), places, axis=0, out=target, mode="wrap")

    return Kernel("GatherND", run, layout.size_bytes)


def _row_shape(context: KernelContext, batch: int) -> tuple[int, int]:
    """Return the data's shape as (coordinate tuples, elements that each addresses)."""
    shape, depth = context.shape(0), batch + context.shape(1)[-1]
    return element_count(shape[:depth]), element_count(shape[depth:])


def _scatter(
    locate_by: Callable[[KernelContext, ScratchLayout], Locate], *, tuples: bool
) -> Builder:
    """Make kernels that copy the data and put, or combine, updates at the indexed positions.

    If positions repeat without a reduction, one of their updates stays.
    """

    def build(context: KernelContext) -> Kernel:
        reduction = context.text("reduction", "none")
        require(reduction == "none" or is_number(context.dtype(0)))
        layout = ScratchLayout()
        locate = locate_by(context, layout)
        rows = _row_shape(context, 0) if tuples else (element_count(context.shape(0)), 1)

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            data, index, updates = inputs
            np.copyto(outputs[0], data)
            places = locate(index, scratch)
            target = outputs[0].reshape(rows)
            changes = updates.reshape((places.size, rows[1]))
            if rows[1] == 1:
                target, changes = target.reshape(-1), changes.reshape(-1)
            if reduction == "none":
                target[places] = changes
            else:
                REDUCTIONS[reduction].at(target, places, changes)

        return Kernel(context.node.operator, run, layout.size_bytes, context.read_once(0))

    return build


scatter = _scatter(_along_axis, tuples=False)
scatter_nd = _scatter(_by_tuples, tuples=True)
