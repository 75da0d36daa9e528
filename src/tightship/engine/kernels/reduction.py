"""Reductions along axes, directly into the output."""

from collections.abc import Callable

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, axis_of, require
from tightship.engine.kernels.numbers import highest, is_number, is_real, lowest
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.graph import element_count

AXES_INPUT_VERSION = 18
"""Opset from which `axes` is an input of every reduction; for ReduceSum that is 13."""

Reduce = Callable[[Array, Array, tuple[int, ...], Array], None]
"""Function `reduce(x, out, axes, work)`; `out` keeps axes as 1, `work` is like x or empty."""


def _reduction(reduce: Reduce, *, needs_work: bool = False, allow_bool: bool = False) -> Builder:
    def build(context: KernelContext) -> Kernel:
        dtype, shape = context.dtype(0), context.shape(0)
        require(dtype == context.output_dtype())
        require(is_number(dtype) or (allow_bool and dtype == np.bool_))
        axes = reduced_axes(context)
        kept = kept_shape(shape, axes)
        layout = ScratchLayout()
        work = layout.slot(dtype, shape if needs_work else (0,))

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            reduce(inputs[0], outputs[0].reshape(kept), axes, work.of(scratch))

        return Kernel(context.node.operator, run, layout.size_bytes)

    return build


def reduced_axes(context: KernelContext) -> tuple[int, ...]:
    """Return reduced axes from the front; if none are given all, or none for a no-op."""
    first = 13 if context.node.operator == "ReduceSum" else AXES_INPUT_VERSION
    rank = len(context.shape(0))
    axes = context.axes(1 if context.version >= first else None)
    if axes:
        return tuple(axis_of(axis, rank) for axis in axes)
    return () if context.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with 1 in place of the lengths of `axes`."""
    return tuple(1 if axis in axes else length for axis, length in enumerate(shape))


def _sum(x: Array, out: Array, axes: tuple[int, ...], _: Array) -> None:
    np.add.reduce(x, axis=axes, out=out, keepdims=True, dtype=out.dtype)


def _product(x: Array, out: Array, axes: tuple[int, ...], _: Array) -> None:
    np.multiply.reduce(x, axis=axes, out=out, keepdims=True, dtype=out.dtype)


def _mean(x: Array, out: Array, axes: tuple[int, ...], work: Array) -> None:
    _sum(x, out, axes, work)
    count = element_count([x.shape[axis] for axis in axes])
    np.true_divide(out, count, out=out, casting="unsafe")


def _largest(x: Array, out: Array, axes: tuple[int, ...], _: Array) -> None:
    np.maximum.reduce(x, axis=axes, out=out, keepdims=True, initial=lowest(x.dtype))


def _smallest(x: Array, out: Array, axes: tuple[int, ...], _: Array) -> None:
    np.minimum.reduce(x, axis=axes, out=out, keepdims=True, initial=highest(x.dtype))


def _sum_of_magnitudes(x: Array, out: Array, axes: tuple[int, ...], work: Array) -> None:
    np.absolute(x, out=work)
    _sum(work, out, axes, work)


def _sum_of_squares(x: Array, out: Array, axes: tuple[int, ...], work: Array) -> None:
    np.multiply(x, x, out=work)
    _sum(work, out, axes, work)


def _euclidean(x: Array, out: Array, axes: tuple[int, ...], work: Array) -> None:
    _sum_of_squares(x, out, axes, work)
    np.sqrt(out, out=out, casting="unsafe")


def _log_of_sum(x: Array, out: Array, axes: tuple[int, ...], work: Array) -> None:
    _sum(x, out, axes, work)
    np.log(out, out=out, casting="unsafe")


def log_sum_exp(context: KernelContext) -> Kernel:
    """Shift by the largest element, so that nothing overflows."""
    dtype, shape = context.dtype(0), context.shape(0)
    require(dtype == context.output_dtype() and is_real(dtype))
    axes = reduced_axes(context)
    kept = kept_shape(shape, axes)
    layout = ScratchLayout()
    work, shift = layout.slot(dtype, shape), layout.slot(dtype, kept)
    unbounded = layout.slot(np.bool_, kept)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out = inputs[0], outputs[0].reshape(kept)
        terms, largest, mask = work.of(scratch), shift.of(scratch), unbounded.of(scratch)
        _largest(x, largest, axes, terms)
        np.isfinite(largest, out=mask)
        np.logical_not(mask, out=mask)
        np.copyto(largest, 0, where=mask)
        np.subtract(x, largest, out=terms)
        np.exp(terms, out=terms)
        _log_of_sum(terms, out, axes, terms)
        np.add(out, largest, out=out)

    return Kernel("ReduceLogSumExp", run, layout.size_bytes)


def _position(*, largest: bool) -> Builder:
    """Find the index of the largest or smallest element along an axis; the first NaN wins.

    NumPy copies its operand unless the axis is the last, so a copy is made in scratch.
    """

    def build(context: KernelContext) -> Kernel:
        shape, dtype = context.shape(0), context.dtype(0)
        require(is_number(dtype))
        axis = axis_of(context.integer("axis", 0), len(shape))
        take_last = bool(context.integer("select_last_index", 0))
        rest = (*shape[:axis], *shape[axis + 1 :])
        is_last = element_count(shape[axis + 1 :]) == 1
        layout = ScratchLayout()
        work = layout.slot(dtype, (*rest, shape[axis]))
        needs_work = take_last or not is_last

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            x, out = inputs[0], outputs[0].reshape(rest)
            if needs_work:
                moved = np.moveaxis(x, axis, -1)
                rows = work.of(scratch)
                np.copyto(rows, moved[..., ::-1] if take_last else moved)
            else:
                rows = x.reshape((*rest, shape[axis]))
            (np.argmax if largest else np.argmin)(rows, axis=-1, out=out)
            if take_last:
                np.subtract(shape[axis] - 1, out, out=out)

        scratch_bytes = layout.size_bytes if needs_work else 0
        return Kernel(context.node.operator, run, scratch_bytes)

    return build


arg_max = _position(largest=True)
arg_min = _position(largest=False)
reduce_l1 = _reduction(_sum_of_magnitudes, needs_work=True)
reduce_l2 = _reduction(_euclidean, needs_work=True)
reduce_log_sum = _reduction(_log_of_sum)
reduce_max = _reduction(_largest, allow_bool=True)
reduce_mean = _reduction(_mean)
reduce_min = _reduction(_smallest, allow_bool=True)
reduce_prod = _reduction(_product)
reduce_sum = _reduction(_sum)
reduce_sum_square = _reduction(_sum_of_squares, needs_work=True)
