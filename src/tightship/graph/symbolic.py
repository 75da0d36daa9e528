"""Constants that contain symbolic lengths, and keys of equal constants."""

import operator
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from tightship.graph.constant import Array, Computed, Constant, Fill, Inline, Mapped
from tightship.graph.layout import DType
from tightship.graph.length import is_length, length_of


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicConstant:
    """Small integer constant, some of whose elements are symbolic lengths."""

    dtype: DType
    elements: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, which has no symbolic lengths."""
        return self.elements.shape

    def array(self) -> Array:
        """Return the elements with their current values."""
        numbers = [operator.index(element) for element in self.elements.flat]
        return np.array(numbers, self.dtype.numpy).reshape(self.shape)

    def release(self) -> None:
        """Do nothing."""


def depends_on_lengths(constant: Constant) -> bool:
    """Whether a constant may differ for other lengths."""
    if isinstance(constant, SymbolicConstant) or any(map(is_length, constant.shape)):
        return True
    return isinstance(constant, Computed) and any(map(depends_on_lengths, constant.sources))


def constant_key(constant: Constant) -> Hashable:
    """Return a key that is equal for constants known to be equal without reading elements.

    A constant without a recipe is equal only to itself. Keys are compared in constant time, however
    often a recipe uses a constant.
    """
    return _key(constant, {})


class _Recipe:
    """Recipe with the keys of its sources; equal ones that are alive are one object."""

    __slots__ = ("__weakref__", "_parts")

    def __init__(self, parts: Hashable) -> None:
        self._parts = parts


_RECIPES: "WeakValueDictionary[Hashable, _Recipe]" = WeakValueDictionary()


def _key(constant: Constant, known: dict[int, Hashable]) -> Hashable:
    """Compute `constant_key`; `known` caches the keys of constants by identity."""
    key = known.get(id(constant))
    if key is None:
        key = known[id(constant)] = _new_key(constant, known)
    return key


def _new_key(constant: Constant, known: dict[int, Hashable]) -> Hashable:
    shape = tuple([length_key(length) for length in constant.shape])
    if isinstance(constant, Mapped):
        file = constant.file.facts or id(constant.file)
        return file, constant.offset_bytes, constant.dtype, shape
    if isinstance(constant, Inline):
        return constant.dtype, shape, constant.value.tobytes()
    if isinstance(constant, Fill):
        return "fill", constant.dtype, shape, constant.value.tobytes()
    if isinstance(constant, SymbolicConstant):
        elements = tuple([length_key(element) for element in constant.elements.flat])
        return "followed", constant.dtype, shape, elements
    if isinstance(constant, Computed) and constant.recipe is not None:
        sources = tuple([_key(source, known) for source in constant.sources])
        parts = constant.recipe, constant.dtype, shape, sources
        return _RECIPES.setdefault(parts, _Recipe(parts))
    return id(constant)


def length_key(length: int) -> Hashable:
    """Return a key that is equal for equal numbers, and for lengths of one expression."""
    followed = length_of(length)
    return length if followed is None else ("length", followed.number)
