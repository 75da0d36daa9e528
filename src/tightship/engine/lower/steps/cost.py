"""Estimates the time of a lowered program from a table, to choose between layouts.

Figures were measured on one core of a server with AVX-512. Their ratios matter: a blocked
convolution with a window takes a fifth longer than one with channels last, a transposed one seven
times as long; concatenations move 20 GB a second.
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
    "split": 4.0, "brg_conv": 6.0, "conv": 40.0, "brdgmm_dw": 45.0, "jit_dw": 35.0,
}  # fmt: skip
"""Nanoseconds per thousand operations of a convolution, by implementation."""
NS_PER_KFLOP_OTHERWISE = 8.0
NS_PER_WEIGHT_BYTE = 0.05
"""Nanoseconds per byte of weights that a convolution waits for."""
NS_PER_BYTE = 0.055
"""Nanoseconds per byte read or written by a step that only moves, scales or pools."""
NS_PER_STEP = 500.0
WEIGHTS = 33
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


def _step_ns(step: LoweredStep) -> float:
    weights = _weights(step)
    if weights is None:
        moved = sum(operand.size_bytes for operand in (*step.reads, *step.writes))
        return NS_PER_STEP + moved * NS_PER_BYTE
    target = step.writes[0].shape
    flops = 2 * element_count(weights.shape) * element_count(target) / target[1]
    family = step.implementation.split(":")[0]
    waited = 0 if family == "streamed" else weights.size_bytes * NS_PER_WEIGHT_BYTE
    return NS_PER_STEP + waited + flops / 1e3 * NS_PER_KFLOP.get(family, NS_PER_KFLOP_OTHERWISE)


def _weights(step: LoweredStep) -> Operand | None:
    """Return the weights of a convolution, whether the library's or a native one; else None."""
    if step.operator.split("+")[0] not in HEADS:
        return None
    if isinstance(step.work, PrimitiveWork):
        return dict(step.work.arguments)[WEIGHTS]
    return step.work.operands[1] if isinstance(step.work, NativeWork) else None
