"""Updates of weights, element by element over the weight and its state."""

import math
from dataclasses import dataclass

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout


@dataclass(frozen=True, slots=True)
class _Scalars:
    """Inputs of an update besides tensors: the rate, and a factor of gradients."""

    dtype: np.dtype[np.generic]
    rate_index: int | None
    scale_index: int | None
    rate: float

    @classmethod
    def of(cls, context: KernelContext, first: int, default: float) -> "_Scalars":
        """Read the rate at input `first`, and the factor after it."""
        rate, scale = (each if context.has_input(each) else None for each in (first, first + 1))
        return cls(context.dtype(0), rate, scale, context.number("rate", default))

    def rate_of(self, inputs: Operands) -> float:
        return self.rate if self.rate_index is None else float(inputs[self.rate_index])

    def scaled(self, inputs: Operands, gradient: Array, room: Array) -> Array:
        """Scale the gradient into `room`; return it unchanged if there is no factor."""
        if self.scale_index is None:
            return gradient
        return np.multiply(gradient, self.dtype.type(float(inputs[self.scale_index])), out=room)


def _decayed(slope: Array, weight: Array, decay: float, rooms: tuple[Array, Array]) -> Array:
    """Add weight decay to the gradient."""
    if not decay:
        return slope
    np.multiply(weight, weight.dtype.type(decay), out=rooms[1])
    return np.add(slope, rooms[1], out=rooms[0])


def _rows(context: KernelContext) -> slice | None:
    """Return the elements that the gradient covers: rows from `start`, or None for all."""
    start = context.node.attributes.get("start")
    if start is None:
        return None
    assert isinstance(start, int)
    first = start * math.prod(context.shape(0)[1:])
    return slice(first, first + math.prod(context.shape(1)))


def _flat(weights: Operands, targets: Operands, rows: slice | None) -> list[Array]:
    """Flatten a weight, its state, and their targets to the rows that change.

    Other rows are copied unless the target overwrites them.
    """
    arrays = [a.reshape(-1) for a in (*weights, *targets)]
    if rows is None:
        return arrays
    for weight, target in zip(arrays[: len(weights)], arrays[len(weights) :], strict=True):
        if not np.may_share_memory(weight, target):
            np.copyto(target, weight)
    return [a[rows] for a in arrays]


def sgd(context: KernelContext) -> Kernel:
    dtype = context.dtype(0)
    require(is_real(dtype) and context.dtype(1) == dtype)
    scalars, decay = _Scalars.of(context, 2, 0.01), context.number("weight_decay", 0.0)
    rows = _rows(context)
    layout = ScratchLayout()
    slots = [layout.slot(dtype, (BLOCK_ELEMENTS,)) for _ in range(2)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        rate = dtype.type(scalars.rate_of(inputs))
        weight, target = _flat(inputs[:1], outputs, rows)
        arrays = [weight, inputs[1].reshape(-1), target]
        rooms = [slot.of(scratch) for slot in slots]
        for start in range(0, arrays[0].size, BLOCK_ELEMENTS):
            weight, gradient, target = (a[start : start + BLOCK_ELEMENTS] for a in arrays)
            t, u = (room[: weight.size] for room in rooms)
            slope = scalars.scaled(inputs, gradient, t)
            slope = _decayed(slope, weight, decay, (t, u))
            np.multiply(slope, rate, out=t)
            np.subtract(weight, t, out=target)

    return Kernel(context.node.operator, run, layout.size_bytes, ((0, 0),))


def momentum_update(context: KernelContext) -> Kernel:
    dtype = context.dtype(0)
    require(is_real(dtype) and all(context.dtype(index) == dtype for index in (1, 2)))
    scalars, decay = _Scalars.of(context, 3, 0.01), context.number("weight_decay", 0.0)
    momentum, is_nesterov = (
        dtype.type(context.number("momentum", 0.9)),
        context.number("nesterov", 0.0),
    )
    rows = _rows(context)
    layout = ScratchLayout()
    slots = [layout.slot(dtype, (BLOCK_ELEMENTS,)) for _ in range(2)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        rate = dtype.type(scalars.rate_of(inputs))
        weight, *others = _flat((inputs[0], inputs[2]), outputs, rows)
        arrays = [weight, inputs[1].reshape(-1), *others]
        rooms = [slot.of(scratch) for slot in slots]
        for start in range(0, arrays[0].size, BLOCK_ELEMENTS):
            weight, gradient, velocity, target, kept = (
                a[start : start + BLOCK_ELEMENTS] for a in arrays
            )
            t, u = (room[: weight.size] for room in rooms)
            slope = scalars.scaled(inputs, gradient, t)
            slope = _decayed(slope, weight, decay, (t, u))
            np.multiply(velocity, momentum, out=kept)
            np.add(kept, slope, out=kept)
            step = kept
            if is_nesterov:
                np.multiply(kept, momentum, out=u)
                step = np.add(u, slope, out=u)
            np.multiply(step, rate, out=t)
            np.subtract(weight, t, out=target)

    return Kernel(context.node.operator, run, layout.size_bytes, ((0, 0), (1, 2)))


def running(context: KernelContext) -> Kernel:
    """Mix the running statistics with those of the batch."""
    dtype = context.dtype(0)
    require(is_real(dtype) and context.dtype(1) == dtype)
    kept, added = (dtype.type(context.number(name, 0.0)) for name in ("kept", "added"))
    rows = _rows(context)
    layout = ScratchLayout()
    slot = layout.slot(dtype, (math.prod(context.shape(1)),))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        new = slot.of(scratch)
        np.multiply(inputs[1].reshape(-1), added, out=new)
        old, target = _flat(inputs[:1], outputs, rows)
        np.multiply(old, kept, out=target)
        np.add(target, new, out=target)

    in_place = ((0, 0), (0, 1)) if rows is None else ((0, 0),)
    return Kernel(context.node.operator, run, layout.size_bytes, in_place)


def adam(context: KernelContext) -> Kernel:
    dtype = context.dtype(0)
    require(is_real(dtype) and all(context.dtype(index) == dtype for index in (1, 2, 3)))
    scalars, epsilon = _Scalars.of(context, 5, 0.001), context.number("epsilon", 1e-8)
    decay = context.number("weight_decay", 0.0)
    rows = _rows(context)
    beta1, beta2 = context.number("beta1", 0.9), context.number("beta2", 0.999)
    layout = ScratchLayout()
    slots = [layout.slot(dtype, (BLOCK_ELEMENTS,)) for _ in range(3)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        weight, *others = _flat((inputs[0], *inputs[2:4]), outputs, rows)
        arrays = [weight, inputs[1].reshape(-1), *others[:2]]
        targets = others[2:]
        count = int(inputs[4])
        root = math.sqrt(1 - beta2**count)
        rate = scalars.rate_of(inputs)
        pace, least = dtype.type(rate * root / (1 - beta1**count)), epsilon * root
        remaining = dtype.type(1 - rate * decay)
        rooms = [slot.of(scratch) for slot in slots]
        for start in range(0, arrays[0].size, BLOCK_ELEMENTS):
            weight, gradient, mean, square = (
                a[start : start + BLOCK_ELEMENTS] for a in arrays
            )  # fmt: skip
            weight_next, mean_next, square_next = (
                a[start : start + BLOCK_ELEMENTS] for a in targets
            )
            t, u, v = (room[: weight.size] for room in rooms)
            slope = scalars.scaled(inputs, gradient, v)
            np.multiply(slope, dtype.type(1 - beta1), out=t)
            np.multiply(mean, dtype.type(beta1), out=mean_next)
            np.add(mean_next, t, out=mean_next)
            np.multiply(slope, slope, out=t)
            np.multiply(t, dtype.type(1 - beta2), out=t)
            np.multiply(square, dtype.type(beta2), out=square_next)
            np.add(square_next, t, out=square_next)
            np.sqrt(square_next, out=t)
            np.add(t, dtype.type(least), out=t)
            np.multiply(mean_next, pace, out=u)
            np.divide(u, t, out=u)
            np.multiply(weight, remaining, out=t)
            np.subtract(t, u, out=weight_next)

    return Kernel(context.node.operator, run, layout.size_bytes, ((0, 0), (1, 2), (2, 3)))
