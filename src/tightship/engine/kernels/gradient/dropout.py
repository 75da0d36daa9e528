"""Dropout by counter-based random numbers, determined by seed, step, stream and position.

Source: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
3", 2011. Elements form groups of 64: the counter `16 g + l` gives four numbers, which are for
element `l` of each quarter of group `g`.
"""

import numpy as np
from numpy.typing import NDArray

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_real

LANES = 16
GROUP = 4 * LANES
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

Words = list[NDArray[np.uint64]]
"""Four 32-bit numbers for each counter."""


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Compute four random numbers for each counter."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        first, second = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (
            (second >> HALF) ^ c1 ^ np.uint64(k0),
            second & LOW,
            (first >> HALF) ^ c3 ^ np.uint64(k1),
            first & LOW,
        )
        k0, k1 = (k0 + WEYL[0]) & int(LOW), (k1 + WEYL[1]) & int(LOW)
    return [c0, c1, c2, c3]


def kept(state: Array, ratio: float, stream: int, start: int, count: int) -> NDArray[np.bool_]:
    """Tell which of `count` elements from `start`, a multiple of 64, are kept."""
    seed, step = (int(number) & (2**64 - 1) for number in state)
    groups = -(-count // GROUP)
    numbers = np.arange(groups * LANES, dtype=np.uint64) + np.uint64(start // GROUP * LANES)
    others = [np.full_like(numbers, n) for n in (step >> 32, stream, step & int(LOW))]
    words = philox([numbers, *others], (seed & int(LOW), seed >> 32))
    drawn = np.stack([word.reshape(groups, LANES) for word in words], 1).reshape(-1)[:count]
    return drawn >= np.uint64(threshold(ratio))


def threshold(ratio: float) -> int:
    """Return the least 32-bit number for which an element is kept."""
    return min(round(ratio * 2**32), 2**32 - 1)


def dropout_training(context: KernelContext) -> Kernel:
    dtype = context.dtype(0)
    require(is_real(dtype))
    ratio, stream = context.number("ratio", 0.5), context.integer("stream", 0)
    scale = dtype.type(context.number("scale", 2.0))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        source, target = inputs[0].reshape(-1), outputs[0].reshape(-1)
        mask = outputs[1] if len(outputs) > 1 else None
        for start in range(0, source.size, BLOCK_ELEMENTS):
            part = slice(start, start + BLOCK_ELEMENTS)
            chosen = kept(inputs[1], ratio, stream, start, source[part].size)
            np.multiply(source[part], scale, out=target[part])
            np.copyto(target[part], 0, where=~chosen)
            if mask is not None:
                mask.reshape(-1)[part] = chosen

    return Kernel(context.node.operator, run, in_place=((0, 0),))
