"""Checks the input shapes that a caller passes."""

from collections.abc import Mapping, Sequence
from operator import index

from tightship.errors import InputError


def check_shapes(shapes: Mapping[str, Sequence[int]] | None) -> None:
    """Check that shapes are lists of lengths by input name.

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
            for length in shape:
                index(length)
        except TypeError:
            raise InputError(
                f"Input `{name}` was given the shape {shape!r}; a shape is a list of whole "
                "numbers, `[1, 4]`."
            ) from None
