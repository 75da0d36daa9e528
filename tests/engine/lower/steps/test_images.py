"""Layouts of images that native convolutions read and write."""

import pytest

from tests.processor import needs_avx512
from tightship.engine.lower.steps.images import image_strides
from tightship.engine.lower.steps.layouts import blocked, channels_last
from tightship.engine.program.program import Operand, Space
from tightship.graph import DType


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2, 32, 5, 7), [5 * 7 * 32, 7 * 32, 32, 16]), ((1, 24, 3, 3), [216, 72, 24, 16])],
)
def test_strides_of_channels_last(shape: tuple[int, ...], strides: list[int]) -> None:
    image = Operand("x", Space.ARENA, 0, DType.FLOAT32, shape, channels_last(shape))
    assert image_strides(image) == strides


@needs_avx512
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2, 32, 5, 7), [2 * 5 * 7 * 16, 112, 16, 560]), ((1, 24, 3, 3), [2 * 9 * 16, 48, 16, 144])],
)
def test_strides_of_blocks_of_channels(shape: tuple[int, ...], strides: list[int]) -> None:
    image = Operand("x", Space.ARENA, 0, DType.FLOAT32, shape, blocked(shape))
    assert image_strides(image) == strides
