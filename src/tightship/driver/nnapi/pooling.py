"""Operations that take the largest or the mean of a window."""

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.site import Site
from tightship.driver.nnapi.window import finished_image, four_axes, read_arguments, window_over


def max_pool(site: Site) -> Tensor:
    """MAX_POOL_2D."""
    return _pool(site, "MaxPool")


def average_pool(site: Site) -> Tensor:
    """AVERAGE_POOL_2D: padding is not counted."""
    return _pool(site, "AveragePool")


def _pool(site: Site, operator: str) -> Tensor:
    arguments = read_arguments(site, 1, 2, is_dilated=False)
    width, height = arguments.middle
    image = four_axes(site, 0, arguments.order)
    site.check_same_quantization()
    window = window_over(site, image.shape[2:], (height, width), arguments)
    shape = (*image.shape[:2], *window.lengths)
    made = site.emission.emit(operator, [image], shape, **window.attributes(is_dilated=False))
    return finished_image(site, made, arguments)
