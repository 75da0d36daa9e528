"""Pooling operations."""

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.operation_context import OperationContext
from tightship.driver.nnapi.window import (
    Window,
    finished_image,
    four_axes,
    read_arguments,
    window_over,
)


def max_pool(context: OperationContext) -> Tensor:
    """Translate MAX_POOL_2D."""
    return _pool(context, "MaxPool")


def average_pool(context: OperationContext) -> Tensor:
    """Translate AVERAGE_POOL_2D; padding is not counted."""
    return _pool(context, "AveragePool")


def _pool(context: OperationContext, operator: str) -> Tensor:
    arguments = read_arguments(context, 1, 2, is_dilated=False)
    width, height = arguments.middle
    image = four_axes(context, 0, arguments.order)
    context.check_same_quantization()
    window = window_over(context, image.shape[2:], (height, width), arguments)
    _check_filled(context, window)
    shape = (*image.shape[:2], *window.lengths)
    made = context.emission.emit(operator, [image], shape, **window.attributes(is_dilated=False))
    return finished_image(context, made, arguments)


def _check_filled(context: OperationContext, window: Window) -> None:
    """Check that every window holds an element: NNAPI leaves other results undefined."""
    for reach, head, tail in zip(window.kernel, window.heads, window.tails, strict=True):
        if max(head, tail) >= reach:
            raise context.uncovered(
                f"its padding is {head} and {tail} along an axis where the kernel spans {reach}, "
                "so that some windows lie in the padding alone"
            )
