"""Layouts of images that native convolutions read and write."""

from collections.abc import Sequence

from tightship._core import MemoryDesc
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import blocked, channels_last, register_floats
from tightship.engine.program.program import Operand

BLOCK = 16
"""Channels in a block of the blocked layout that the kernels read."""


def image_source(builder: Builder, name: str) -> Operand:
    """Return an image with channels last, or in blocks of 16 if it lies so."""
    home = builder.home(name)
    if register_floats() == BLOCK and home.desc == blocked(home.shape):
        return home
    return builder.in_layout(name, channels_last(home.shape))


def image_layout(builder: Builder, shape: Sequence[int]) -> MemoryDesc:
    """Return the layout of an image to write: that of the program's images."""
    in_blocks = builder.options.blocked and register_floats() == BLOCK and shape[1] % BLOCK == 0
    return (blocked if in_blocks else channels_last)(shape)


def image_strides(image: Operand) -> list[int]:
    """Return the elements from one image, row, pixel and block of 16 channels to the next."""
    _, channels, height, width = image.shape
    if image.desc == channels_last(image.shape):
        return [height * width * channels, width * channels, channels, BLOCK]
    blocks = -(-channels // BLOCK)
    return [blocks * height * width * BLOCK, width * BLOCK, BLOCK, height * width * BLOCK]
