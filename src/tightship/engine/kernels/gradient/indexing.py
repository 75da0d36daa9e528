"""Gradients of operators that select elements: added where they were selected, else zero."""

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.graph import element_count


def gather(context: KernelContext) -> Kernel:
    shape = context.output_shape()
    axis = axis_of(context.integer("axis", 0), len(shape))
    before, after = element_count(shape[:axis]), element_count(shape[axis + 1 :])
    count = element_count(context.shape(1))
    start, length = context.integer("start", 0), context.integer("length", shape[axis])

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        dy = inputs[0].reshape((before, count, after))
        dx = outputs[0].reshape((before, shape[axis], after))
        dx.fill(0)
        for place, picked in enumerate(inputs[1].reshape(-1)):
            index = range(length)[picked] - start
            if 0 <= index < shape[axis]:
                np.add(dx[:, index], dy[:, place], out=dx[:, index])

    return Kernel("GatherGrad", run)


def gather_elements(context: KernelContext) -> Kernel:
    shape, picked = context.output_shape(), context.shape(1)
    axis = axis_of(context.integer("axis", 0), len(shape))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0].fill(0)
        places = list(np.ogrid[tuple(slice(length) for length in picked)])
        places[axis] = inputs[1]
        np.add.at(outputs[0], tuple(places), inputs[0])

    return Kernel("GatherElementsGrad", run)


def slice_grad(context: KernelContext) -> Kernel:
    rows = [context.parameter(index) for index in range(1, 5)]
    require(all(row is not None for row in rows))
    index: list[slice] = [slice(None)] * len(context.output_shape())
    for start, stop, axis, step in zip(*(r.tolist() for r in rows if r is not None), strict=True):
        chosen = range(context.output_shape()[axis])[start:stop:step]
        stop = chosen.stop if chosen.stop >= 0 else None  # noqa: PLW2901
        index[axis] = slice(chosen.start, stop, chosen.step)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0].fill(0)
        np.copyto(outputs[0][tuple(index)], inputs[0])

    return Kernel("SliceGrad", run)
