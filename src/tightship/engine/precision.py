"""Type that products by constants multiply in, as a name among passes left out.

Like the type of activations, it is part of what identifies plans, prepared files and rows of
caches.
"""

from collections.abc import Collection
from typing import Literal

from tightship.errors import InputError

FLOAT32_PRODUCTS = "float32_products"
"""Name in `without`; left out, products round both operands to bfloat16 and add up in float32."""

Precision = Literal["float32", "bfloat16"]


def with_precision(without: Collection[str], precision: str | None) -> tuple[str, ...]:
    """Return the passes to leave out for a type of products; None keeps them.

    Raises:
        InputError: The type is unknown, or not that of the passes.
    """
    if precision not in (None, "float32", "bfloat16"):
        raise InputError(f"`precision` is {precision!r}; it must be `float32` or `bfloat16`.")
    is_left_out = FLOAT32_PRODUCTS in without
    if precision == "float32" and is_left_out:
        raise InputError(
            f"`precision` is `float32`, and `{FLOAT32_PRODUCTS}` is left out; leave one of these "
            "away."
        )
    if precision == "bfloat16" and not is_left_out:
        return (*without, FLOAT32_PRODUCTS)
    return tuple(without)


def precision_of(without: Collection[str]) -> Precision:
    """Return the type of products for passes left out."""
    return "bfloat16" if FLOAT32_PRODUCTS in without else "float32"
