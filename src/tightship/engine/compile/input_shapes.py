"""Checks of the input shapes that a caller passes, and keys by which programs are kept."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import SupportsIndex

from tightship.engine.program.program import Lowered, Space
from tightship.errors import InputError

Key = tuple[tuple[str, tuple[int, ...]], ...]
"""Name and shape of each input of a program."""


def key_of(lowered: Lowered) -> Key:
    """Return the input shapes that a program is for."""
    return tuple(
        (name, operand.shape)
        for name, operand in lowered.inputs.items()
        if operand.space is not Space.OBJECT
    )


def shape_or_length(given: Sequence[int] | SupportsIndex) -> tuple[int, ...] | int:
    """Return a shape as a tuple, or the length of a named dimension as it is.

    Raises:
        TypeError: It is neither.
    """
    try:
        return index(given)  # type: ignore[arg-type]
    except TypeError:
        return tuple([index(length) for length in given])  # type: ignore[union-attr]


def check_shapes(shapes: Mapping[str, Sequence[int] | int] | None) -> None:
    """Check that shapes are lists of lengths by input, or single lengths by dimension.

    Raises:
        InputError: A shape is not a list of integers, or `shapes` is not a mapping.
    """
    if shapes is None:
        return
    if not isinstance(shapes, Mapping):
        raise InputError(
            f'`shapes` must map input names to shapes, as in `{{"x": [1, 4]}}`, not {shapes!r}.'
        )
    for name, shape in shapes.items():
        try:
            shape_or_length(shape)
        except TypeError:
            raise InputError(
                f"Input `{name}` was given the shape {shape!r}; a shape is a list of whole "
                "numbers, `[1, 4]`, and the length of a named dimension a whole number."
            ) from None
