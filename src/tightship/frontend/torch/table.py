"""The translation of each operator of ATen that has one."""

from collections.abc import Callable, Mapping

from tightship.frontend.torch import (
    indexing,
    movement,
    normalization,
    pointwise,
    products,
    reduction,
    windows,
)
from tightship.frontend.torch.writer import Call, Operand

Translation = Callable[[Call], Operand | tuple[Operand | None, ...]]

TRANSLATIONS: Mapping[str, Translation] = {
    f"aten.{name}": translation
    for part in (
        indexing.TABLE,
        movement.TABLE,
        normalization.TABLE,
        pointwise.TABLE,
        products.TABLE,
        reduction.TABLE,
        windows.TABLE,
    )
    for name, translation in part.items()
}

CREATED = frozenset(
    f"aten.{name}"
    for name in ("arange.default", "arange.start", "arange.start_step", "eye.default", "eye.m",
                 "full.default", "linspace.default", "ones.default", "scalar_tensor.default",
                 "tril_indices.default", "zeros.default")
)  # fmt: skip
"""Operators that make a tensor of numbers alone."""
