"""Tensors and numbers that depend on lengths alone, computed once the lengths are known."""

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sympy
import torch
from torch.fx.node import map_aggregate

from tightship.frontend.torch.arithmetic import Lengths, Number
from tightship.frontend.torch.tensor import constant_of
from tightship.frontend.writer import Type
from tightship.graph import Derived, DType, Fill
from tightship.graph.constant import Array
from tightship.graph.length import is_length, value_now
from tightship.graph.symbolic import SymbolicConstant, length_key


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """Non-integer number that depends on symbolic lengths."""

    expression: sympy.Basic
    lengths: Lengths

    @property
    def now(self) -> float:
        """Value for the lengths that are currently bound."""
        return self._by(value_now)

    def fixed(self) -> float:
        """Return the value, and make the current lengths a condition."""
        return self._by(operator.index)

    def _by(self, number: Callable[[int], int]) -> float:
        symbols = self.expression.free_symbols
        return float(self.expression.subs({s: number(self.lengths[s]) for s in symbols}))

    @property
    def sources(self) -> list[int]:
        """Lengths that it depends on."""
        return [self.lengths[symbol] for symbol in sorted(self.expression.free_symbols, key=str)]


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """Operator of torch on numbers, tensors and computations, some of which depend on lengths.

    Attributes:
        operator: Function to call.
        arguments: Positional arguments.
        keywords: Keyword arguments.
    """

    operator: Callable[..., torch.Tensor]
    arguments: tuple[object, ...]
    keywords: Mapping[str, object]

    def tensor(self, found: "dict[Computation, torch.Tensor]") -> torch.Tensor:
        """Return the result for the currently bound lengths; `found` caches computations."""
        if self not in found:
            with torch.no_grad():
                arguments, keywords = _now((self.arguments, dict(self.keywords)), found)
                found[self] = self.operator(*arguments, **keywords)
        return found[self]

    def leaves(self) -> Iterator[Any]:
        """Yield all arguments, those of nested computations included."""
        for leaf in _leaves((self.arguments, dict(self.keywords))):
            if isinstance(leaf, Computation):
                yield from leaf.leaves()
            else:
                yield leaf

    @property
    def sources(self) -> list[int]:
        """Lengths that it depends on."""
        found = []
        for leaf in self.leaves():
            if isinstance(leaf, Ratio):
                found += leaf.sources
            elif is_length(leaf):
                found.append(leaf)
        return found

    @property
    def recipe(self) -> Hashable:
        """Key that is equal for computations with equal results for all lengths."""
        parts = _leaves((self.arguments, dict(self.keywords)))
        return self.operator, tuple(map(_key, parts)), tuple(self.keywords)


OF_ONE_NUMBER = {"aten.full.default": 0, "aten.ones.default": 1, "aten.zeros.default": 0}
"""Operators that fill a tensor with one number: their second argument, or this default."""

Made = torch.Tensor | Number | Ratio | Computation
"""Value that depends on no input or parameter."""


def constant_of_lengths(made: Computation | Ratio, type_: Type) -> Derived:
    """Return a constant that is valid for all lengths."""
    if isinstance(made, Ratio):
        compute: Callable[[], Array] = partial(_number, made, type_[0])
        recipe: Hashable = (str(made.expression),)
    else:
        compute, recipe = partial(_array, made), made.recipe
    elements = np.empty(len(made.sources), object)
    for index, length in enumerate(made.sources):
        elements[index] = length
    return Derived(*type_, compute, (SymbolicConstant(DType.INT64, elements),), recipe)


def filled(name: str, computation: Computation, type_: Type) -> Fill | None:
    """Return a tensor of several elements of one known number, which is not materialized."""
    if name not in OF_ONE_NUMBER or not any(length != 1 for length in type_[1]):
        return None
    value = computation.arguments[1] if len(computation.arguments) > 1 else OF_ONE_NUMBER[name]
    if isinstance(value, Ratio) or is_length(value):
        return None
    return Fill(np.array(value).astype(type_[0].numpy), type_[1])


def _number(ratio: Ratio, dtype: DType) -> Array:
    return np.array(ratio.now).astype(dtype.numpy)


def _array(computation: Computation) -> Array:
    return constant_of(computation.tensor({}).contiguous(), "computed").array()


def _now(arguments: object, found: dict[Computation, torch.Tensor]) -> Any:  # noqa: ANN401
    def now(leaf: Any) -> object:  # noqa: ANN401
        if isinstance(leaf, Computation):
            return leaf.tensor(found)
        if isinstance(leaf, Ratio):
            return leaf.now
        return value_now(leaf) if is_length(leaf) else leaf

    return map_aggregate(arguments, now)


def _leaves(arguments: object) -> list[Any]:
    leaves: list[Any] = []
    map_aggregate(arguments, leaves.append)
    return leaves


def _key(leaf: object) -> Hashable:
    if isinstance(leaf, Computation):
        return leaf.recipe
    if isinstance(leaf, Ratio):
        return str(leaf.expression)
    if isinstance(leaf, torch.Tensor):
        return id(leaf)
    return length_key(leaf) if isinstance(leaf, int) else str(leaf)
