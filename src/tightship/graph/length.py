"""Symbolic lengths: traces a computation so that its result holds for further lengths.

A computation on a `Length` returns lengths, each with the expression that it came from. Whenever a
decision depends on one - a comparison, a conversion to a plain integer - the trace records the
outcome as a condition. Where the same conditions hold, the same computation would have decided
alike, so its result is right once each length in it is evaluated anew:

    n = trace.symbol("n", 16)        n is 16 here
    m = 3 * n + 2                    50, and remembers how
    m > 4                            True; the condition (3 * n + 2 > 4) is kept
    np.zeros(n)                      the condition (n == 16) is kept: true of no other length

After `seal`, a length has a value within `bound` only; asking for one elsewhere is an error.
"""

import operator
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import TypeGuard, TypeVar, cast

from tightship.graph.layout import UnboundLengthError

T = TypeVar("T")

Operation = Callable[[int, int], int]
Comparison = Callable[[int, int], bool]
Term = tuple[tuple[int, ...], int]
"""Numbers of the multiplied expressions, and the coefficient of the product."""
Polynomial = tuple[Term, ...]
Expression = str | int | tuple[Operation, int, int] | Polynomial


class Trace:
    """Expressions of lengths, numbered so that operands come first, and conditions on them.

    An expression is a symbol, a quotient or remainder of two others, or a polynomial in those;
    equal polynomials have one number, and one without symbols is a plain integer.
    """

    def __init__(self) -> None:
        self.conditions: dict[tuple[Comparison, int, int], bool] = {}
        self.settled: dict[Hashable, tuple[Callable[[], object], object]] = {}
        self._expressions: list[Expression] = []
        self._symbols: dict[str, int] = {}
        self._values: list[int] = []
        self._numbers: dict[Expression, int] = {}
        self._sealed = False
        self._bound = threading.local()

    def symbol(self, name: str, value: int) -> int:
        """Make a length that is a symbol of its own, with a value for this trace."""
        self._symbols[name] = value
        return self._length(self._number(name), value)

    def derived(self, operation: Operation, left: int, right: int) -> int:
        """Apply an operation; the result is a length while tracing, unless it is always equal."""
        if self.is_plain:
            return operation(value_now(left), value_now(right))
        value = operation(value_of(left), value_of(right))
        if operation in (operator.add, operator.sub):
            sign = 1 if operation is operator.add else -1
            terms = [*self._terms(left), *((m, sign * c) for m, c in self._terms(right))]
            return self._polynomial(terms, value)
        if operation is operator.mul:
            return self._polynomial(
                [
                    (tuple(sorted((*one, *other))), count * factor)
                    for one, count in self._terms(left)
                    for other, factor in self._terms(right)
                ],
                value,
            )
        if operation is operator.floordiv and not is_length(right) and value_of(right) == 1:
            return left
        operands = self.number_of(left), self.number_of(right)
        return self._length(self._number((operation, *operands)), value)

    def _length(self, number: int, value: int) -> int:
        return cast("int", Length(self, number, value))

    def _polynomial(self, terms: Sequence[Term], value: int) -> int:
        sums: dict[tuple[int, ...], int] = {}
        for monomial, count in terms:
            sums[monomial] = sums.get(monomial, 0) + count
        kept = tuple(sorted((monomial, count) for monomial, count in sums.items() if count))
        if not kept or kept[-1][0] == ():
            return value
        if len(kept) == 1 and len(kept[0][0]) == 1 and kept[0][1] == 1:
            return self._length(kept[0][0][0], value)
        return self._length(self._number(kept), value)

    def cancelled(self, product: int, factor: int) -> int | None:
        """Return the quotient of two lengths, if it is a monomial."""
        over, under = dict(self._terms(product)), self._terms(factor)
        for term in over.items():
            found = _quotient(term, under[0])
            if found is None:
                continue
            left, count = found
            again = {tuple(sorted((*left, *numbers))): count * each for numbers, each in under}
            if again == over:
                value = value_of(product) // value_of(factor) if value_of(factor) else 0
                return self._polynomial([found], value)
        return None

    def _terms(self, length: int) -> Polynomial:
        followed = length_of(length)
        if followed is None:
            return (((), length),)
        expression = self._expressions[followed.number]
        return expression if _is_polynomial(expression) else (((followed.number,), 1),)

    def linear(self, length: int, symbol: int) -> tuple[int, int] | None:
        """Return `a` and `b` of a length `a * symbol + b`; None if it has another form."""
        factor = rest = 0
        (wanted,) = (number for (number,), _ in self._terms(symbol))
        for monomial, count in self._terms(length):
            if monomial == (wanted,):
                factor = count
            elif monomial == ():
                rest = count
            else:
                return None
        return factor, rest

    def evaluated(self, number: int, symbols: Mapping[str, int]) -> int:
        """Evaluate one expression by its number."""
        values: list[int] = []
        for expression in self._expressions[: number + 1]:
            values.append(_evaluated(expression, values, symbols))
        return values[number]

    def decided(self, comparison: Comparison, left: int, right: int) -> bool:
        """Compare, and record the outcome as a condition."""
        if self.is_plain:
            return comparison(value_now(left), value_now(right))
        difference = self.derived(operator.sub, left, right)
        if not is_length(difference):
            return comparison(difference, 0)
        found = comparison(value_of(left), value_of(right))
        self.conditions[comparison, self.number_of(left), self.number_of(right)] = found
        return found

    def number_of(self, length: int) -> int:
        """Return the number of a length's expression."""
        followed = length_of(length)
        return self._number(length) if followed is None else followed.number

    def seal(self) -> None:
        """End the tracing; from now on lengths have the values that are bound."""
        self._sealed = True

    @property
    def is_plain(self) -> bool:
        """Whether lengths are just their values: tracing has ended, or values are bound."""
        return self._sealed or getattr(self._bound, "values", None) is not None

    def values(self, symbols: Mapping[str, int]) -> list[int] | None:
        """Evaluate every expression; None if a condition does not hold."""
        values: list[int] = []
        try:
            for expression in self._expressions:
                values.append(_evaluated(expression, values, symbols))
        except ZeroDivisionError:
            return None
        for (comparison, left, right), found in self.conditions.items():
            if comparison(values[left], values[right]) is not found:
                return None
        with self.bound(values):
            if any(compute() != result for compute, result in self.settled.values()):
                return None
        return values

    def settle(self, compute: Callable[[], T], key: Hashable) -> T:
        """Return the result of a computation, with the condition that it stays the same."""
        if key not in self.settled:
            with self.bound(self._values):
                self.settled[key] = compute, compute()
        return cast("T", self.settled[key][1])

    @contextmanager
    def bound(self, values: Sequence[int]) -> Iterator[None]:
        """Give every length its value for a `with` block of this thread."""
        before = getattr(self._bound, "values", None)
        self._bound.values = values
        try:
            yield
        finally:
            self._bound.values = before

    def current(self, number: int) -> int:
        """Return the value of an expression now.

        Raises:
            UnboundLengthError: No values are bound.
        """
        values: Sequence[int] | None = getattr(self._bound, "values", None)
        if values is None:
            raise UnboundLengthError
        return values[number]

    def _number(self, expression: Expression) -> int:
        number = self._numbers.get(expression)
        if number is None:
            number = self._numbers[expression] = len(self._expressions)
            self._expressions.append(expression)
            self._values.append(_evaluated(expression, self._values, self._symbols))
        return number


def _is_polynomial(expression: Expression) -> TypeGuard[Polynomial]:
    return isinstance(expression, tuple) and isinstance(expression[0], tuple)


def _evaluated(expression: Expression, values: Sequence[int], symbols: Mapping[str, int]) -> int:
    if isinstance(expression, str):
        return symbols[expression]
    if isinstance(expression, int):
        return expression
    if _is_polynomial(expression):
        return sum(count * prod(values[n] for n in monomial) for monomial, count in expression)
    operation, left, right = cast("tuple[Operation, int, int]", expression)
    return operation(values[left], values[right])


class Length:
    """Integer to Python code; whatever depends on its value records a condition."""

    __slots__ = ("number", "trace", "value")

    def __init__(self, trace: Trace, number: int, value: int) -> None:
        self.trace, self.number, self.value = trace, number, value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    @property
    def current(self) -> int:
        """Value; while tracing, the traced value, with the condition that it stays the same."""
        if self.trace.is_plain:
            return self.trace.current(self.number)
        self.trace.decided(operator.eq, self._integer, self.value)
        return self.value

    def __index__(self) -> int:
        return self.current

    __int__ = __index__
    __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.current)

    def __hash__(self) -> int:
        return hash(self.current)

    def __repr__(self) -> str:
        return repr(self.current)

    def __format__(self, spec: str) -> str:
        return format(self.current, spec)

    def __bool__(self) -> bool:
        return not self.trace.decided(operator.eq, self._integer, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int):
            return NotImplemented
        return self.trace.decided(operator.eq, self._integer, other)

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, int):
            return NotImplemented
        return not self.trace.decided(operator.eq, self._integer, other)

    def __lt__(self, other: int) -> bool:
        return self.trace.decided(operator.lt, self._integer, other)

    def __le__(self, other: int) -> bool:
        return self.trace.decided(operator.le, self._integer, other)

    def __gt__(self, other: int) -> bool:
        return not self.trace.decided(operator.le, self._integer, other)

    def __ge__(self, other: int) -> bool:
        return not self.trace.decided(operator.lt, self._integer, other)

    def __neg__(self) -> int:
        return self.trace.derived(operator.sub, 0, self._integer)

    def __pos__(self) -> int:
        return self._integer

    def __abs__(self) -> int:
        return self._integer if self >= 0 else -self

    @property
    def _integer(self) -> int:
        """Itself, typed as an integer."""
        return cast("int", self)


def quotient(product: int, factor: int) -> int | None:
    """Return the number that times `factor` is `product`; None if there is none.

    If it follows from the expressions alone, the only condition is that `factor` is not 0.
    """
    if factor == 0:
        return None
    followed = length_of(product)
    found = None if followed is None else followed.trace.cancelled(product, factor)
    if found is not None:
        return found
    return None if product % factor != 0 else product // factor


def same_for_all(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two shapes are equal for all lengths; records no condition."""
    return len(left) == len(right) and all(map(_same_for_all, left, right))


def _same_for_all(left: int, right: int) -> bool:
    one, other = length_of(left), length_of(right)
    if one is None or other is None:
        return one is other and left == right
    return one.number == other.number


def settled(compute: Callable[[], T], key: Hashable, lengths: Sequence[int]) -> T:
    """Return the result of a computation on symbolic lengths as a whole.

    The one condition is that it is the same for other lengths, which is checked by computing it for
    them.

    Args:
        compute: Function whose result can be compared.
        key: Key that is equal for equal computations.
        lengths: Lengths that it depends on.
    """
    followed = next((found for n in lengths if (found := length_of(n)) is not None), None)
    return compute() if followed is None else followed.trace.settle(compute, key)


def _quotient(over: Term, under: Term) -> Term | None:
    """Return the quotient of two monomials, if one divides the other."""
    (numbers, count), (divisors, divisor) = over, under
    left = list(numbers)
    if divisor == 0 or count % divisor:
        return None
    for number in divisors:
        if number not in left:
            return None
        left.remove(number)
    return tuple(left), count // divisor


def length_of(value: object) -> Length | None:
    """Return an integer as a `Length`, if it is one; `isinstance` cannot tell."""
    return value if type(value) is Length else None


def is_length(value: object) -> bool:
    """Whether a value is a symbolic length."""
    return type(value) is Length


def value_of(length: int) -> int:
    """Return the value while tracing, without a condition."""
    followed = length_of(length)
    return int(length) if followed is None else followed.value


def value_now(length: int) -> int:
    """Return the bound value."""
    followed = length_of(length)
    return int(length) if followed is None else followed.current


def _define(name: str, operation: Operation) -> None:
    def forward(self: Length, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return self.trace.derived(operation, cast("int", self), other)

    def reflected(self: Length, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        return self.trace.derived(operation, other, cast("int", self))

    setattr(Length, f"__{name}__", forward)
    setattr(Length, f"__r{name}__", reflected)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _define(_name, getattr(operator, _name))
