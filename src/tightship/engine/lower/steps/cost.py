"""Estimates the time of a lowered program from a table, to choose between layouts.

Figures were measured on one core of a server with AVX-512. Their ratios matter: a blocked
convolution with a window takes a fifth longer than one with channels last, a transposed one seven
times as long; concatenations move 20 GB a second. Channels last is slow where pixels lie a multiple
of 4 KiB apart, because they then share sets of the nearest cache.
"""

from tightship.engine.program.program import (
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
)
from tightship.graph import element_count

NS_PER_KFLOP = {
    "brgconv": 5.5, "brgconv_1x1": 5.7, "jit": 6.6, "jit_1x1": 5.6, "streamed": 5.9,
    "split": 4.0, "winograd": 2.2, "brg_conv": 6.0, "conv": 40.0, "brdgmm_dw": 45.0, "jit_dw": 35.0,
}  # fmt: skip
"""Nanoseconds per thousand operations of a convolution, by implementation."""
NS_PER_KFLOP_OTHERWISE = 8.0
NS_PER_WEIGHT_BYTE = 0.05
"""Nanoseconds per byte of weights that a convolution waits for."""
NS_PER_BYTE = 0.055
"""Nanoseconds per byte read or written by a step that only moves, scales or pools."""
NS_PER_STEP = 500.0
SET_BYTES = 4096
"""Distance of addresses that share a set of the nearest cache, which holds 8 or 12 of them."""
CROWDED_PIXELS = 32
"""Least pixels of a row of results at which such a set is too small for what is read at once."""
CROWDED = 1.6
"""Times as long as `brgconv` then takes (Zen 4: 1.36 to 1.74 with 512 and 1,024 channels)."""
SRC, DST, WEIGHTS = 1, 17, 33
HEADS = ("Conv", "ConvTranspose", "ScaledConv")


def cost_ns(lowered: Lowered) -> float:
    """Estimate the nanoseconds of a run, as far as they depend on layouts."""
    return sum(_step_ns(step) for step in lowered.steps)


def concat_ns(lowered: Lowered) -> float:
    """Estimate the nanoseconds that concatenations of images take."""
    return sum(
        _step_ns(step)
        for step in lowered.steps
        if step.operator == "Concat" and len(step.writes[0].shape) > 3
    )


def crowded_ns(lowered: Lowered) -> float:
    """Estimate the nanoseconds of convolutions whose pixels share few sets of the cache."""
    return sum(_step_ns(step) for step in lowered.steps if _is_crowded(step))


def _is_crowded(step: LoweredStep) -> bool:
    """Whether a window with channels last reads many pixels that are a multiple of 4 KiB apart."""
    work = step.work
    if not isinstance(work, PrimitiveWork) or not step.implementation.startswith("brgconv:"):
        return False
    operands = dict(work.arguments)
    source, target, weights = (operands[key].desc for key in (SRC, DST, WEIGHTS))
    if source is None or target is None or weights is None or not source.is_plain:
        return False
    before, after = source.dims[-1], target.dims[-1]
    step_bytes = source.strides[-1] * 4 * max(before // max(after, 1), 1)
    return weights.dims[-1] > 1 and after >= CROWDED_PIXELS and step_bytes % SET_BYTES == 0


def _step_ns(step: LoweredStep) -> float:
    weights = _weights(step)
    if weights is None:
        moved = sum(operand.size_bytes for operand in (*step.reads, *step.writes))
        return NS_PER_STEP + moved * NS_PER_BYTE
    target = step.writes[0].shape
    flops = 2 * element_count(weights.shape) * element_count(target) / target[1]
    family = step.implementation.split(":")[0]
    slower = CROWDED if _is_crowded(step) else 1
    waited = 0 if family == "streamed" else weights.size_bytes * NS_PER_WEIGHT_BYTE
    each = slower * NS_PER_KFLOP.get(family, NS_PER_KFLOP_OTHERWISE)
    return NS_PER_STEP + waited + flops / 1e3 * each


def _weights(step: LoweredStep) -> Operand | None:
    """Return the weights of a convolution, whether the library's or a native one; else None."""
    if step.operator.split("+")[0] not in HEADS:
        return None
    if isinstance(step.work, PrimitiveWork):
        return dict(step.work.arguments)[WEIGHTS]
    return step.work.operands[1] if isinstance(step.work, NativeWork) else None
