"""Types that products multiply in, as names among passes left out: of blocks, of other weights.

Plans, prepared files and rows of caches are identified by the passes left out, so that a choice
among these is part of what identifies them all.
"""

from collections.abc import Collection
from typing import Literal

from tightship.errors import InputError

EXACT = "float32_activations"
"""Name in `without`; left out, products by weights in blocks round activations to int8 by block."""
FLOAT32_PRODUCTS = "float32_products"
"""Name in `without`; left out, products round both operands to bfloat16 and add up in float32."""

HALVES_NEED = frozenset({"fuse_attention", "native", "read_stored_rows"})
"""Passes without which no kernel reads caches of float16."""

Precision = Literal["float32", "bfloat16"]


def with_activations(without: Collection[str], activations: str | None) -> tuple[str, ...]:
    """Return the passes to leave out for a type of activations; None keeps them.

    Raises:
        InputError: The type is unknown, or not that of the passes.
    """
    if activations not in (None, "float32", "int8"):
        raise InputError(f"`activations` is {activations!r}; it must be `float32` or `int8`.")
    if activations == "float32" and EXACT in without:
        raise InputError(
            f"`activations` is `float32`, and `{EXACT}` is left out; leave one of these away."
        )
    return (*without, EXACT) if activations == "int8" and EXACT not in without else (*without,)


def activations_of(without: Collection[str]) -> Literal["float32", "int8"]:
    """Return the type of activations for passes left out."""
    return "int8" if EXACT in without else "float32"


def usual_cache(without: Collection[str]) -> Literal["float16"] | None:
    """Return the type that sessions round their caches to by default; None for the file's.

    It is float16 where activations are rounded, as a caller chooses for a GGUF file: logits are as
    near to those of float32 then as with rows that are not rounded. Without a pass that gives such
    rows to a kernel it is the file's, so that passes can be left out for comparison.
    """
    return "float16" if EXACT in without and HALVES_NEED.isdisjoint(without) else None


def passes_of(without: Collection[str]) -> list[str]:
    """Return the passes left out in order, without the types of activations and products."""
    return sorted(name for name in without if name not in (EXACT, FLOAT32_PRODUCTS))


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
