"""Gradients of what picks elements: added where they were picked, zero elsewhere."""

from collections.abc import Mapping

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.site import Builder, Site, axis_of, require
from tightship.graph import element_count


def _gather(site: Site) -> Kernel:
    shape = site.output_shape()
    axis = axis_of(site.integer("axis", 0), len(shape))
    before, after = element_count(shape[:axis]), element_count(shape[axis + 1 :])
    count = element_count(site.shape(1))
    start, length = site.integer("start", 0), site.integer("length", shape[axis])

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        dy = inputs[0].reshape((before, count, after))
        dx = outputs[0].reshape((before, shape[axis], after))
        dx.fill(0)
        for place, picked in enumerate(inputs[1].reshape(-1)):
            index = range(length)[picked] - start
            if 0 <= index < shape[axis]:
                np.add(dx[:, index], dy[:, place], out=dx[:, index])

    return Kernel("GatherGrad", run)


def _gather_elements(site: Site) -> Kernel:
    shape, picked = site.output_shape(), site.shape(1)
    axis = axis_of(site.integer("axis", 0), len(shape))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0].fill(0)
        places = list(np.ogrid[tuple(slice(length) for length in picked)])
        places[axis] = inputs[1]
        np.add.at(outputs[0], tuple(places), inputs[0])

    return Kernel("GatherElementsGrad", run)


def _slice(site: Site) -> Kernel:
    rows = [site.parameter(index) for index in range(1, 5)]
    require(all(row is not None for row in rows))
    index: list[slice] = [slice(None)] * len(site.output_shape())
    for start, stop, axis, step in zip(*(r.tolist() for r in rows if r is not None), strict=True):
        chosen = range(site.output_shape()[axis])[start:stop:step]
        stop = chosen.stop if chosen.stop >= 0 else None  # noqa: PLW2901
        index[axis] = slice(chosen.start, stop, chosen.step)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0].fill(0)
        np.copyto(outputs[0][tuple(index)], inputs[0])

    return Kernel("SliceGrad", run)


INDEXING: Mapping[str, Builder] = {
    "GatherElementsGrad": _gather_elements,
    "GatherGrad": _gather,
    "SliceGrad": _slice,
}
