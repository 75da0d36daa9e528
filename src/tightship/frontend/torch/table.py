"""Table of the translations of ATen operators."""

from collections.abc import Callable, Mapping

from tightship.frontend.torch import (
    gradient,
    indexing,
    movement,
    normalization,
    pointwise,
    products,
    reduction,
    windows,
)
from tightship.frontend.torch.call import Call
from tightship.frontend.torch.computed import OF_ONE_NUMBER
from tightship.frontend.writer import Operand

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

TRANSLATIONS_OF_TRAINING: Mapping[str, Translation] = {
    **TRANSLATIONS,
    **{
        f"aten.{name}": translation
        for part in (gradient.TABLE, indexing.IN_TRAINING, products.IN_TRAINING)
        for name, translation in part.items()
    },
}
"""Translations of a training step, which normalizes by the batch and drops elements."""

UNREAD: Mapping[str, tuple[str, ...]] = {
    "aten.max_pool2d_with_indices_backward.default": ("indices",),
    "aten.native_batch_norm_backward.default": ("save_mean", "save_invstd"),
    "aten.nll_loss2d_backward.default": ("total_weight",),
    "aten.nll_loss_backward.default": ("total_weight",),
}
"""Arguments that torch saves for a gradient; None if a translation does not need them."""

CREATED = frozenset(OF_ONE_NUMBER) | frozenset(
    f"aten.{name}"
    for name in ("arange.default", "arange.start", "arange.start_step", "eye.default", "eye.m",
                 "linspace.default", "scalar_tensor.default", "tril_indices.default")
)  # fmt: skip
"""Operators that create a tensor from numbers alone."""
