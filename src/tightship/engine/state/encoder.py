"""Inputs of a decoder that have an encoder's rows, the same at each step of a text."""

from collections.abc import Mapping

from tightship.errors import InputError
from tightship.graph import Shape

MARKS = ("encoder_", ".encoder.", "cross")
"""Parts of names of such inputs, or of their dimensions."""


def is_of_encoder(name: str, shape: Shape | None) -> bool:
    """Whether an input has an encoder's rows, by its name or the name of a dimension."""
    words = {name, *(length for length in shape or () if isinstance(length, str))}
    return any(mark in word for word in words for mark in MARKS)


def encoder_dimensions(declared: Mapping[str, Shape | None]) -> frozenset[str]:
    """Return the names of lengths that inputs with an encoder's rows alone have."""
    of_encoder, others = set[str](), set[str]()
    for name, shape in declared.items():
        found = of_encoder if is_of_encoder(name, shape) else others
        found.update(length for length in shape or () if isinstance(length, str))
    return frozenset(of_encoder - others)


def encoder_shapes(
    declared: Mapping[str, Shape | None],
    batch: int,
    lengths: Mapping[str, int],
    default: int | None = None,
) -> dict[str, tuple[int, ...]]:
    """Return shapes of the inputs with an encoder's rows.

    Args:
        declared: Inputs as the file declares them.
        batch: Length of the dimensions that other inputs have too.
        lengths: Lengths by dimension.
        default: Length of a dimension that is not given; None refuses it.

    Raises:
        InputError: A dimension has no length.
    """
    own = encoder_dimensions(declared)
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in declared.items():
        if shape is None or not is_of_encoder(name, shape):
            continue
        plain = [d if isinstance(d, int) else lengths.get(str(d), default) if d in own or d is None
                 else batch for d in shape]  # fmt: skip
        if None in plain:
            missing = shape[plain.index(None)]
            raise InputError(
                f"Input `{name}` has the rows of an encoder, of which `{missing}` has no length; "
                f"give it, as in `--shape {missing}=1500`."
            )
        found[name] = tuple(int(d or 0) for d in plain)
    return found
