"""Shapes that a caller names for inputs, before anything is made of them."""

from collections.abc import Mapping, Sequence
from operator import index

from tightship.errors import InputError


def check_shapes(shapes: Mapping[str, Sequence[int]] | None) -> None:
    """Refuse what is not a list of lengths by the name of each input.

    Raises:
        InputError: It is not.
    """
    if shapes is None:
        return
    if not isinstance(shapes, Mapping):
        raise InputError(
            f'Shapes are given by the names of inputs, `{{"x": [1, 4]}}`, not as {shapes!r}.'
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
