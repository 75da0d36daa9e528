"""Updates of weights: element by element, over the weight and its state."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import Booking
from tightship.engine.kernels.site import Builder, Site, require


def _rate(site: Site, index: int, default: float) -> Callable[[Operands], float]:
    """What an update is multiplied by: the run's, where the node reads one, or the attribute."""
    if site.has_input(index):
        return lambda inputs: float(inputs[index])
    fixed = site.number("rate", default)
    return lambda _: fixed


def _sgd(site: Site) -> Kernel:
    dtype = site.dtype(0)
    require(is_real(dtype) and site.dtype(1) == dtype)
    rate_of = _rate(site, 2, 0.01)
    booking = Booking()
    slot = booking.slot(dtype, (BLOCK_ELEMENTS,))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        rate = dtype.type(rate_of(inputs))
        weight, gradient, target = (a.reshape(-1) for a in (*inputs[:2], *outputs))
        change = slot.of(scratch)
        for start in range(0, weight.size, BLOCK_ELEMENTS):
            part = slice(start, start + BLOCK_ELEMENTS)
            scaled = change[: weight[part].size]
            np.multiply(gradient[part], rate, out=scaled)
            np.subtract(weight[part], scaled, out=target[part])

    return Kernel(site.node.operator, run, booking.size_bytes, ((0, 0),))


def _momentum(site: Site) -> Kernel:
    dtype = site.dtype(0)
    require(is_real(dtype) and all(site.dtype(index) == dtype for index in (1, 2)))
    rate_of, momentum = _rate(site, 3, 0.01), dtype.type(site.number("momentum", 0.9))
    booking = Booking()
    slot = booking.slot(dtype, (BLOCK_ELEMENTS,))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        rate = dtype.type(rate_of(inputs))
        arrays = [a.reshape(-1) for a in (*inputs[:3], *outputs)]
        change = slot.of(scratch)
        for start in range(0, arrays[0].size, BLOCK_ELEMENTS):
            weight, gradient, velocity, target, kept = (
                a[start : start + BLOCK_ELEMENTS] for a in arrays
            )
            scaled = change[: weight.size]
            np.multiply(velocity, momentum, out=kept)
            np.add(kept, gradient, out=kept)
            np.multiply(kept, rate, out=scaled)
            np.subtract(weight, scaled, out=target)

    return Kernel(site.node.operator, run, booking.size_bytes, ((0, 0), (1, 2)))


def _running(site: Site) -> Kernel:
    """The old one and what the batch has, by shares."""
    dtype = site.dtype(0)
    require(is_real(dtype) and site.dtype(1) == dtype)
    kept, added = (dtype.type(site.number(name, 0.0)) for name in ("kept", "added"))
    booking = Booking()
    slot = booking.slot(dtype, site.shape(0))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        new = slot.of(scratch)
        np.multiply(inputs[1], added, out=new)
        np.multiply(inputs[0], kept, out=outputs[0])
        np.add(outputs[0], new, out=outputs[0])

    return Kernel(site.node.operator, run, booking.size_bytes, ((0, 0),))


def _adam(site: Site) -> Kernel:
    dtype = site.dtype(0)
    require(is_real(dtype) and all(site.dtype(index) == dtype for index in (1, 2, 3)))
    rate_of, epsilon = _rate(site, 5, 0.001), site.number("epsilon", 1e-8)
    beta1, beta2 = site.number("beta1", 0.9), site.number("beta2", 0.999)
    booking = Booking()
    slots = [booking.slot(dtype, (BLOCK_ELEMENTS,)) for _ in range(2)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        arrays = [a.reshape(-1) for a in inputs[:4]]
        targets = [a.reshape(-1) for a in outputs]
        count = int(inputs[4])
        root = math.sqrt(1 - beta2**count)
        pace, least = dtype.type(rate_of(inputs) * root / (1 - beta1**count)), epsilon * root
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
            np.add(t, dtype.type(least), out=t)
            np.multiply(mean_next, pace, out=u)
            np.divide(u, t, out=u)
            np.subtract(weight, u, out=weight_next)

    return Kernel(site.node.operator, run, booking.size_bytes, ((0, 0), (1, 2), (2, 3)))


UPDATES: Mapping[str, Builder] = {
    "AdamUpdate": _adam,
    "MomentumUpdate": _momentum,
    "RunningUpdate": _running,
    "SgdUpdate": _sgd,
}
