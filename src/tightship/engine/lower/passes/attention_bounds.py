"""Range of keys that each query of attention sees, read from what masks say of every score."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tightship.engine.lower.passes.index_algebra import Reader
from tightship.engine.lower.passes.index_cases import Affine, Cases, NotAffineError, Space, number
from tightship.engine.lower.passes.polynomial import Algebra
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType
from tightship.graph.symbolic import SymbolicConstant, length_key

HIDDEN_MAX = -1e4
"""Largest value that a mask may add to a hidden score, to give it weight 0."""

Conditions = tuple[Affine, ...]
"""Conditions on rows and columns of the scores, by the numbers of their axes, and on the run."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Keys that query i sees: those from `position(i) - behind` to `position(i) + ahead`.

    Attributes:
        length: Number of keys in use, which gives the last query the last position; None if the
            position of query i is `first` + i.
        first: Position of the first query.
        ahead: Keys seen beyond the own position; negative: all.
        behind: Keys seen before it; negative: all.
    """

    length: Affine | None = None
    first: int = 0
    ahead: int = -1
    behind: int = -1


def conditions_of(
    algebra: Algebra, mask: str, kind: str, scores: Sequence[int]
) -> Conditions | None:
    """Return the conditions under which a mask keeps a score, if it hides all others.

    Args:
        algebra: Reader of the graph.
        mask: Name of a value that broadcasts to the scores.
        kind: added, kept or hidden.
        scores: Shape of the scores.
    """
    space = Space(dict(enumerate(scores)))
    reader = Reader(algebra, space, 0 if len(scores) > 2 else None)
    try:
        cases = reader.read(mask, tuple(Affine.of(axis) for axis in range(len(scores))))
        return _kept(cases, kind)
    except NotAffineError:
        return None


def _kept(cases: Cases, kind: str) -> Conditions | None:
    seen: list[Conditions] = []
    for conditions, leaf in cases:
        value = number(leaf)
        if kind == "added" and value != 0:
            if not value <= HIDDEN_MAX:
                return None
        elif kind == "added" or bool(value) is (kind == "kept"):
            seen.append(conditions)
    return seen[0] if len(seen) == 1 else None


def bounds_of(conditions: Conditions, rank: int, queries: int) -> Bounds | None:
    """Return the bounds that conditions express together; None if they are of another form."""
    row, column = rank - 2, rank - 1
    uppers: list[Affine] = []
    lengths: list[Affine] = []
    lowers: list[Affine] = []
    for each in conditions:
        rest = each.without(row, column)
        if any(not isinstance(symbol, str) for symbol, _ in rest.terms):
            return None
        form = each.factor(row), each.factor(column)
        if form == (1, -1):
            uppers.append(rest)
        elif form == (0, -1):
            lengths.append(rest.plus(1))
        elif form == (-1, 1) or (form == (0, 1) and queries == 1):
            lowers.append(rest.times(-1))
        else:
            return None
    try:
        return _joined(_extreme(uppers, -1), _extreme(lengths, -1), _extreme(lowers, 1), queries)
    except NotAffineError:
        return None


def _extreme(values: Sequence[Affine], sign: int) -> Affine | None:
    """Return the largest value, or the smallest for a sign of -1.

    Raises:
        NotAffineError: Only a run knows which it is.
    """
    found: Affine | None = None
    for each in values:
        if found is None or _distance(each, found) * sign > 0:
            found = each
    return found


def _distance(left: Affine, right: Affine) -> int:
    difference = left - right
    if difference.terms:
        raise NotAffineError
    return difference.constant


def _joined(
    upper: Affine | None, length: Affine | None, lower: Affine | None, queries: int
) -> Bounds:
    """Combine `column <= row + upper`, `column < length` and `column >= row + lower`.

    Raises:
        NotAffineError: Bounds cannot express that.
    """
    ahead = -1
    if upper is not None:
        last = upper.plus(queries)
        ahead = 0 if length is None else max(_distance(last, length), 0)
        length = last if ahead == 0 else length
    if length is None:
        return Bounds() if lower is None else _from(lower)
    first = length.plus(-queries)
    behind = -1 if lower is None else _distance(first, lower)
    if lower is not None and behind < 0:
        raise NotAffineError
    if length.terms:
        return Bounds(length, 0, ahead, behind)
    if ahead != 0:
        raise NotAffineError
    if behind < 0 and first.constant >= 0:
        return Bounds(ahead=first.constant)
    return Bounds(first=first.constant, ahead=0, behind=behind)


def _from(lower: Affine) -> Bounds:
    """Have query i see all keys from i + `lower` on."""
    if lower.terms:
        raise NotAffineError
    first = max(lower.constant, 0)
    return Bounds(first=first, behind=first - lower.constant)


@dataclass(slots=True)
class LengthWriter(GraphWriter):
    """Writes nodes that compute numbers of keys in use, each once."""

    _known: dict[object, str] = field(default_factory=dict)

    def name_of(self, length: Affine) -> str:
        """Return a value of int64, [1] or [batch], adding to `nodes` what is not yet there."""
        key = length.terms, length_key(length.constant)
        if key not in self._known:
            self._known[key] = self._written(length)
        return self._known[key]

    def _written(self, length: Affine) -> str:
        name = f"{length.terms[0][0]}.length{len(self._known)}"
        total = ""
        for index, (symbol, factor) in enumerate(length.terms):
            term = self._vector(str(symbol), f"{name}.{index}")
            if factor != 1:
                term = self._node("Mul", f"{term}.times", term, self._number(factor, term))
            total = self._node("Add", f"{term}.sum", total, term) if total else term
        return self._node("Add", name, total, self._number(length.constant, name))

    def _vector(self, symbol: str, name: str) -> str:
        value = self.graph.value(symbol)
        if value.dtype is not DType.INT64:
            wide = self.declare(f"{name}.wide", value.static_shape, DType.INT64)
            symbol = self.add("Cast", (symbol,), wide, {"to": 7})
        count = next((n for n in value.static_shape if n != 1), 1)
        return self.reshape(symbol, (count,), self.declare(name, (count,), DType.INT64))

    def _number(self, number: int, name: str) -> str:
        self.constants[f"{name}.number"] = SymbolicConstant(
            DType.INT64, np.array([number], object)
        )  # fmt: skip
        return f"{name}.number"

    def _node(self, operator: str, name: str, left: str, right: str) -> str:
        shapes = [self.values[each].static_shape for each in (left, right) if each in self.values]
        shape = next((shape for shape in shapes if shape[0] != 1), (1,))
        return self.add(operator, (left, right), self.declare(name, shape, DType.INT64))
