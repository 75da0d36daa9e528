"""Table of the translations of jax primitives."""

from collections.abc import Callable, Mapping

from tightship.frontend.jax import (
    convolution,
    indexing,
    movement,
    pointwise,
    products,
    reduction,
    slices,
    windows,
)
from tightship.frontend.jax.call import Call
from tightship.frontend.writer import Operand

Translation = Callable[[Call], Operand | tuple[Operand, ...]]

TRANSLATIONS: Mapping[str, Translation] = {
    **convolution.TABLE,
    **indexing.TABLE,
    **movement.TABLE,
    **pointwise.TABLE,
    **products.TABLE,
    **reduction.TABLE,
    **slices.TABLE,
    **windows.TABLE,
}

MADE = frozenset(("iota",))
"""Primitives that create an array from numbers alone."""

UNSET = frozenset(("empty", "empty2"))
"""Primitives that create an array of unspecified elements."""

INLINED: Mapping[str, str] = {
    "checkpoint": "jaxpr",
    "closed_call": "call_jaxpr",
    "composite": "jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
}
"""Primitives that call a jaxpr, and the parameter that contains it."""
