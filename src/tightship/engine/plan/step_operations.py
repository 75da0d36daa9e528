"""Estimates how long steps take, in operations that do not depend on the processor."""

from collections.abc import Callable, Mapping

from tightship.engine.program.program import ControlWork, LoweredStep, Operand
from tightship.graph import element_count

OPERATIONS_PER_BYTE = 7
"""Cost of moving a byte, in operations of a step that multiplies."""


def _filtered(one: Operand, other: Operand, weights: Operand) -> Operand:
    """Choose the image with a channel for each filter; the smaller one if both have."""
    filters = weights.shape[0]
    return min(
        one, other, key=lambda image: (image.shape[1] != filters, element_count(image.shape))
    )


CONVOLUTIONS: Mapping[str, Callable[[Operand, Operand, Operand], tuple[Operand, Operand]]] = {
    "Conv": lambda _, weights, result: (weights, result),
    "ConvGradData": lambda dy, weights, _: (weights, dy),
    "ConvGradWeights": lambda one, other, result: (result, _filtered(one, other, result)),
}
"""Functions from two operands read and the result to the weights and the filtered image."""
PRODUCTS = frozenset({*CONVOLUTIONS, "Gemm", "MatMul", "TransposedMatMul"})


def step_operations(step: LoweredStep) -> int:
    """Estimate the operations of a step, which the bytes that it moves count towards."""
    if isinstance(step.work, ControlWork):
        return _of_control(step.work)
    moved = sum(operand.size_bytes for operand in (*step.reads, *step.writes))
    return OPERATIONS_PER_BYTE * moved + _products(step)


def _of_control(work: ControlWork) -> int:
    """Count the operations of all iterations, or of the longer branch; of one if not counted."""
    bodies = [sum(map(step_operations, body.lowered.steps)) for body in work.bodies]
    return max(bodies) * max(1, work.iterations.most)


def _products(step: LoweredStep) -> int:
    """Count multiplications and additions of a matrix product or a convolution."""
    operator = step.operator.split("+")[0]
    if operator not in PRODUCTS:
        return 0
    first, second, result = step.reads[0], step.reads[1], step.writes[0]
    if not all(operand.shape for operand in (first, second, result)):
        return 0  # only the run knows their shapes
    if operator in CONVOLUTIONS:
        weights, image = CONVOLUTIONS[operator](first, second, result)
        return 2 * element_count(weights.shape) * element_count(image.shape) // image.shape[1]
    stacks = element_count(result.shape[:-2]) if len(second.shape) > 2 else 1
    sizes = [element_count(operand.shape) / stacks for operand in (first, second, result)]
    return int(2 * stacks * (sizes[0] * sizes[1] * sizes[2]) ** 0.5)
