"""Pooling operations."""

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.site import Site
from tightship.driver.nnapi.window import (
    Window,
    finished_image,
    four_axes,
    read_arguments,
    window_over,
)


def max_pool(site: Site) -> Tensor:
    """Translate MAX_POOL_2D."""
    return _pool(site, "MaxPool")


def average_pool(site: Site) -> Tensor:
    """Translate AVERAGE_POOL_2D; padding is not counted."""
    return _pool(site, "AveragePool")


def _pool(site: Site, operator: str) -> Tensor:
    arguments = read_arguments(site, 1, 2, is_dilated=False)
    width, height = arguments.middle
    image = four_axes(site, 0, arguments.order)
    site.check_same_quantization()
    window = window_over(site, image.shape[2:], (height, width), arguments)
    _check_filled(site, window)
    shape = (*image.shape[:2], *window.lengths)
    made = site.emission.emit(operator, [image], shape, **window.attributes(is_dilated=False))
    return finished_image(site, made, arguments)


def _check_filled(site: Site, window: Window) -> None:
    """Check that every window holds an element: NNAPI leaves other results undefined."""
    for reach, head, tail in zip(window.kernel, window.heads, window.tails, strict=True):
        if max(head, tail) >= reach:
            raise site.uncovered(
                f"its padding is {head} and {tail} along an axis where the kernel spans {reach}, "
                "so that some windows lie in the padding alone"
            )
