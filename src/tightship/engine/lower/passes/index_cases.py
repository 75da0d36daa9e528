"""Integers and conditions over indices: what a mask says at (row, column), exactly.

A value is a list of cases that exclude each other. Each has conditions, affine expressions that are
at least 0, all of which hold, and the value under them: an integer that is affine itself, or a
floating-point number. Comparing two affine integers divides a case in two, because the negation of
`x >= 0` is `-x - 1 >= 0`. Booleans are the integers 0 and 1.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Symbol = str | int
"""Index along an axis of the whole, by number, or an integer that only the run knows, by name."""

CASES_MAX = 24


class NotAffineError(Exception):
    """A value is not one that cases can hold."""


@dataclass(frozen=True, slots=True)
class Affine:
    """Sum of symbols times integers other than 0, and a constant that may be a symbolic length."""

    terms: tuple[tuple[Symbol, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, symbol: Symbol) -> "Affine":
        """Make the expression of a symbol alone."""
        return cls(((symbol, 1),))

    def __add__(self, other: "Affine") -> "Affine":
        sums = dict(self.terms)
        for symbol, factor in other.terms:
            sums[symbol] = sums.get(symbol, 0) + factor
        kept = sorted(((s, f) for s, f in sums.items() if f), key=lambda term: str(term[0]))
        return Affine(tuple(kept), self.constant + other.constant)

    def __sub__(self, other: "Affine") -> "Affine":
        return self + other.times(-1)

    def times(self, factor: int) -> "Affine":
        """Multiply by an integer."""
        if factor == 0:
            return Affine()
        return Affine(tuple((s, f * factor) for s, f in self.terms), self.constant * factor)

    def plus(self, number: int) -> "Affine":
        """Add a constant."""
        return Affine(self.terms, self.constant + number)

    def without(self, *symbols: Symbol) -> "Affine":
        """Drop the terms of some symbols."""
        return Affine(tuple(t for t in self.terms if t[0] not in symbols), self.constant)

    def factor(self, symbol: Symbol) -> int:
        """Return the factor of a symbol, 0 if it does not occur."""
        return dict(self.terms).get(symbol, 0)


Leaf = Affine | float
Case = tuple[tuple[Affine, ...], Leaf]
Cases = tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Space:
    """Lengths of the axes whose indices are symbols; the first index is 0."""

    lengths: Mapping[int, int]

    def least(self, value: Affine) -> int | None:
        """Return the least value over all indices; None if it depends on more than these."""
        total = value.constant
        for symbol, factor in value.terms:
            if not isinstance(symbol, int):
                return None
            total = total + (factor * (self.lengths[symbol] - 1) if factor < 0 else 0)
        return total

    def always(self, condition: Affine) -> bool:
        """Whether a condition holds for all indices."""
        least = self.least(condition)
        return least is not None and least >= 0

    def never(self, conditions: Sequence[Affine]) -> bool:
        """Whether one condition, or two together, hold for no indices."""
        return any(self.always(negated(one)) for one in conditions) or any(
            self.always((one + other).times(-1).plus(-1))
            for index, one in enumerate(conditions)
            for other in conditions[:index]
        )

    def combine(self, function: Callable[..., Cases], *operands: Cases) -> Cases:
        """Apply a function to the values of all cases that can hold at once.

        Raises:
            NotAffineError: There would be too many cases.
        """
        states: list[tuple[tuple[Affine, ...], tuple[Leaf, ...]]] = [((), ())]
        for operand in operands:
            states = [
                (conditions, (*leaves, leaf))
                for before, leaves in states
                for more, leaf in operand
                if (conditions := self._joined(before, more)) is not None
            ]
            _check_count(len(states))
        found = [
            (conditions, leaf)
            for before, leaves in states
            for more, leaf in function(*leaves)
            if (conditions := self._joined(before, more)) is not None
        ]
        _check_count(len(found))
        return tuple(found)

    def _joined(
        self, before: tuple[Affine, ...], more: Sequence[Affine]
    ) -> tuple[Affine, ...] | None:
        """Return conditions with further ones that say something; None if they contradict."""
        conditions = list(before)
        for each in more:
            if not self.always(each) and not any(self.always(each - one) for one in conditions):
                conditions.append(each)
        return None if self.never(conditions) else tuple(conditions)


def _check_count(count: int) -> None:
    if count > CASES_MAX:
        raise NotAffineError


def negated(condition: Affine) -> Affine:
    """Return the condition that holds where `condition` does not."""
    return condition.times(-1).plus(-1)


def single(leaf: Leaf) -> Cases:
    """Make a value that is the same under all conditions."""
    return (((), leaf),)


def number(leaf: Leaf) -> float | int:
    """Return a constant.

    Raises:
        NotAffineError: The value depends on symbols.
    """
    if isinstance(leaf, float):
        return leaf
    if leaf.terms:
        raise NotAffineError
    return leaf.constant


def choose(condition: Affine, then: Leaf, otherwise: Leaf) -> Cases:
    """Return one value where a condition holds, and another elsewhere."""
    return ((condition,), then), ((negated(condition),), otherwise)


TRUE, FALSE = Affine(constant=1), Affine()


def at_least(left: Leaf, right: Leaf) -> Cases:
    """Compare two values: 1 where the left one is at least the right one."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        return choose(left - right, TRUE, FALSE)
    return single(TRUE if number(left) >= number(right) else FALSE)


def less(left: Leaf, right: Leaf) -> Cases:
    """Compare two values: 1 where the left one is less."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        return choose((right - left).plus(-1), TRUE, FALSE)
    return single(TRUE if number(left) < number(right) else FALSE)


def equal(left: Leaf, right: Leaf) -> Cases:
    """Compare two values: 1 where they are equal."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        more = left - right
        under, over = negated(more), negated(more.times(-1))
        is_both = (more, more.times(-1))
        return (is_both, TRUE), ((under,), FALSE), ((over,), FALSE)
    return single(TRUE if number(left) == number(right) else FALSE)


def largest(left: Leaf, right: Leaf) -> Cases:
    """Return the larger of two values."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        return choose(left - right, left, right)
    return single(max(float(number(left)), float(number(right))))


def smallest(left: Leaf, right: Leaf) -> Cases:
    """Return the smaller of two values."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        return choose(left - right, right, left)
    return single(min(float(number(left)), float(number(right))))


def added(left: Leaf, right: Leaf) -> Cases:
    """Add two values."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        return single(left + right)
    return single(float(number(left)) + float(number(right)))


def subtracted(left: Leaf, right: Leaf) -> Cases:
    """Subtract the right value from the left one."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        return single(left - right)
    return single(float(number(left)) - float(number(right)))


def multiplied(left: Leaf, right: Leaf) -> Cases:
    """Multiply two values, one of which is a constant."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        constant, other = (left, right) if not left.terms else (right, left)
        return single(other.times(number_as_integer(constant)))
    product = float(number(left)) * float(number(right))
    if math.isnan(product):
        raise NotAffineError
    return single(product)


def number_as_integer(leaf: Leaf) -> int:
    """Return a constant integer.

    Raises:
        NotAffineError: The value is not one.
    """
    found = number(leaf)
    if isinstance(found, float):
        raise NotAffineError
    return found
