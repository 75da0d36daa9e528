"""Updates of weights: element by element, over the weight and its state."""

import math
from collections.abc import Mapping

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import Booking
from tightship.engine.kernels.site import Builder, Site, require


def _sgd(site: Site) -> Kernel:
    dtype = site.dtype(0)
    require(is_real(dtype) and site.dtype(1) == dtype)
    rate = dtype.type(site.number("rate", 0.01))
    booking = Booking()
    slot = booking.slot(dtype, (BLOCK_ELEMENTS,))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        weight, gradient, target = (a.reshape(-1) for a in (*inputs, *outputs))
        change = slot.of(scratch)
        for start in range(0, weight.size, BLOCK_ELEMENTS):
            part = slice(start, start + BLOCK_ELEMENTS)
            scaled = change[: weight[part].size]
            np.multiply(gradient[part], rate, out=scaled)
            np.subtract(weight[part], scaled, out=target[part])

    return Kernel(site.node.operator, run, booking.size_bytes, ((0, 0),))


def _adam(site: Site) -> Kernel:
    dtype = site.dtype(0)
    require(is_real(dtype) and all(site.dtype(index) == dtype for index in (1, 2, 3)))
    rate, epsilon = site.number("rate", 0.001), dtype.type(site.number("epsilon", 1e-8))
    beta1, beta2 = site.number("beta1", 0.9), site.number("beta2", 0.999)
    booking = Booking()
    slots = [booking.slot(dtype, (BLOCK_ELEMENTS,)) for _ in range(2)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        arrays = [a.reshape(-1) for a in inputs[:4]]
        targets = [a.reshape(-1) for a in outputs]
        count = int(inputs[4])
        pace = dtype.type(rate * math.sqrt(1 - beta2**count) / (1 - beta1**count))
        rooms = [slot.of(scratch) for slot in slots]
        for start in range(0, arrays[0].size, BLOCK_ELEMENTS):
            weight, gradient, mean, square = (
                a[start : start + BLOCK_ELEMENTS] for a in arrays
            )  # fmt: skip
            weight_next, mean_next, square_next = (
                a[start : start + BLOCK_ELEMENTS] for a in targets
            )
            t, u = (room[: weight.size] for room in rooms)
            np.multiply(gradient, dtype.type(1 - beta1), out=t)
            np.multiply(mean, dtype.type(beta1), out=mean_next)
            np.add(mean_next, t, out=mean_next)
            np.multiply(gradient, gradient, out=t)
            np.multiply(t, dtype.type(1 - beta2), out=t)
            np.multiply(square, dtype.type(beta2), out=square_next)
            np.add(square_next, t, out=square_next)
            np.sqrt(square_next, out=t)
            np.add(t, epsilon, out=t)
            np.multiply(mean_next, pace, out=u)
            np.divide(u, t, out=u)
            np.subtract(weight, u, out=weight_next)

    return Kernel(site.node.operator, run, booking.size_bytes, ((0, 0), (1, 2), (2, 3)))


UPDATES: Mapping[str, Builder] = {"AdamUpdate": _adam, "SgdUpdate": _sgd}
