"""Reads a value of a graph as cases over the indices of its elements.

Nothing is fitted to samples: an element is followed through the operators that made it, down to
constants, ranges and integers that only the run knows. Constants are read whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tightship.engine.lower.passes.index_cases import (
    FALSE,
    TRUE,
    Affine,
    Cases,
    Leaf,
    NotAffineError,
    Space,
    added,
    at_least,
    equal,
    largest,
    less,
    multiplied,
    negated,
    number,
    number_as_integer,
    single,
    smallest,
    subtracted,
)
from tightship.engine.lower.passes.index_tables import table_of
from tightship.engine.lower.passes.polynomial import Algebra
from tightship.graph import Constant, DType, Node, element_count
from tightship.graph.length import settled
from tightship.graph.symbolic import SymbolicConstant, constant_key, length_key

ELEMENTS_MAX = 1 << 24
STEPS_MAX = 600
"""Operators that one value is followed through, those of shared parts counted again."""

Indices = tuple[Affine, ...]

_INTEGERS = (DType.INT64, DType.INT32)


def _is_both(left: Leaf, right: Leaf) -> Cases:
    return single(TRUE if number(left) and number(right) else FALSE)


def _is_either(left: Leaf, right: Leaf) -> Cases:
    return single(TRUE if number(left) or number(right) else FALSE)


def _differs(left: Leaf, right: Leaf) -> Cases:
    return single(TRUE if bool(number(left)) != bool(number(right)) else FALSE)


def _is_not(leaf: Leaf) -> Cases:
    return single(FALSE if number(leaf) else TRUE)


BINARY: Mapping[str, Callable[[Leaf, Leaf], Cases]] = {
    "Add": added,
    "Sub": subtracted,
    "Mul": multiplied,
    "Max": largest,
    "Min": smallest,
    "And": _is_both,
    "Or": _is_either,
    "Xor": _differs,
    "Equal": equal,
    "Less": less,
    "GreaterOrEqual": at_least,
    "Greater": lambda left, right: less(right, left),
    "LessOrEqual": lambda left, right: at_least(right, left),
}
UNARY: Mapping[str, Callable[[Leaf], Cases]] = {
    "Not": _is_not,
    "Neg": lambda leaf: single(leaf.times(-1) if isinstance(leaf, Affine) else -leaf),
    "Identity": single,
}


@dataclass(slots=True)
class Reader:
    """Follows elements of a graph's values.

    Integers of the run that are the same for all rows and columns become symbols, unless they are
    affine in others. They may have an element for each index along the axis `batch` of the whole.
    """

    algebra: Algebra
    space: Space
    batch: int | None = None
    steps: int = 0

    def read(self, name: str, indices: Indices) -> Cases:
        """Return the cases of the element at some indices.

        Raises:
            NotAffineError: They are not affine, or too many.
        """
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise NotAffineError
        constant = self.algebra.graph.constant(name)
        if constant is not None:
            return self._constant(constant, self._within(constant.shape, indices))
        indices = self._within(self.shape(name), indices)
        if self._is_atom(name, indices):
            return single(self._atom(name, indices))
        return self._made(name, indices)

    def _is_atom(self, name: str, indices: Indices) -> bool:
        """Whether an element is an integer of the run, the same for all rows and columns."""
        value = self.algebra.graph.value(name)
        return value.dtype in _INTEGERS and all(
            not index.terms or self._is_batch(index) for index in indices
        )

    def _is_batch(self, index: Affine) -> bool:
        return self.batch is not None and index.terms == ((self.batch, 1),) and index.constant == 0

    def _atom(self, name: str, indices: Indices) -> Leaf:
        """Expand an integer of the run as far as that is one case; else it is a symbol."""
        try:
            found = self._made(name, indices)
        except NotAffineError:
            found = ()
        if len(found) == 1 and isinstance(found[0][1], Affine):
            return found[0][1]
        wide = [i for n, i in zip(self.shape(name), indices, strict=True) if n != 1]
        if len(wide) > 1 or not all(self._is_batch(index) for index in wide):
            raise NotAffineError
        return Affine.of(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value.

        Raises:
            NotAffineError: It is not known.
        """
        value = self.algebra.graph.value(name)
        if not value.is_static:
            raise NotAffineError
        return value.static_shape

    def _within(self, shape: Sequence[int], indices: Indices) -> Indices:
        """Return indices into an operand that broadcasts to the shape that they are of."""
        own = indices[len(indices) - len(shape) :] if len(shape) <= len(indices) else ()
        if len(own) != len(shape):
            raise NotAffineError
        return tuple(
            Affine() if length == 1 else index for length, index in zip(shape, own, strict=True)
        )

    def _made(self, name: str, indices: Indices) -> Cases:
        node = self.algebra.makers.get(name)
        if node is None or node.domain or node.fused:
            raise NotAffineError
        if node.operator in BINARY:
            return self._folded(BINARY[node.operator], node, indices)
        if node.operator in UNARY:
            return self.space.combine(UNARY[node.operator], self.read(node.inputs[0], indices))
        emitters = {**MOVES, **CHOICES}
        if node.operator not in emitters:
            raise NotAffineError
        return emitters[node.operator](self, node, indices)

    def _folded(
        self, function: Callable[[Leaf, Leaf], Cases], node: Node, indices: Indices
    ) -> Cases:
        found = self.read(node.inputs[0], indices)
        for other in node.inputs[1:]:
            found = self.space.combine(function, found, self.read(other, indices))
        return found

    def one(self, name: str, indices: Indices) -> Affine:
        """Read an element that is one affine integer under all conditions."""
        found = self.read(name, indices)
        if len(found) != 1 or not isinstance(found[0][1], Affine):
            raise NotAffineError
        return found[0][1]

    def plain(self, name: str) -> list[int]:
        """Read a constant vector of integers that no symbolic length enters."""
        constant = self.algebra.graph.constant(name) if name else None
        if constant is None or element_count(constant.shape) > 16:
            raise NotAffineError
        return [int(each) for each in constant.array().reshape(-1).tolist()]

    def _constant(self, constant: Constant, indices: Indices) -> Cases:
        if isinstance(constant, SymbolicConstant):
            if all(not index.terms for index in indices):
                place = tuple(int(index.constant) for index in indices)
                return single(Affine(constant=constant.elements[place]))
            raise NotAffineError
        if element_count(constant.shape) > ELEMENTS_MAX:
            raise NotAffineError
        fixed = tuple(None if index.terms else int(index.constant) for index in indices)
        key = "table", constant_key(constant), fixed, *map(length_key, constant.shape)
        table = settled(lambda: table_of(constant, fixed), key, constant.shape)
        if table is None:
            raise NotAffineError
        return table.at(tuple(index for index in indices if index.terms))


def _reshaped(reader: Reader, node: Node, indices: Indices) -> Cases:
    """Follow a value that gains or loses axes of length one only."""
    before, after = reader.shape(node.inputs[0]), reader.shape(node.outputs[0])
    kept = [(n, index) for n, index in zip(after, indices, strict=True) if n != 1]
    lengths = [n for n in before if n != 1]
    if len(kept) != len(lengths) or any(
        n != own for n, (own, _) in zip(lengths, kept, strict=True)
    ):
        raise NotAffineError
    rest = iter(kept)
    found = tuple(Affine() if n == 1 else next(rest)[1] for n in before)
    return reader.read(node.inputs[0], found)


def _expanded(reader: Reader, node: Node, indices: Indices) -> Cases:
    return reader.read(node.inputs[0], indices)


def _transposed(reader: Reader, node: Node, indices: Indices) -> Cases:
    order = node.attributes.get("perm", tuple(reversed(range(len(indices)))))
    assert isinstance(order, tuple)
    places = [order.index(axis) for axis in range(len(indices))]
    return reader.read(node.inputs[0], tuple(indices[place] for place in places))


def _sliced(reader: Reader, node: Node, indices: Indices) -> Cases:
    shape = reader.shape(node.inputs[0])
    starts = _bounds(reader, node.inputs[1])
    axes = reader.plain(node.inputs[3]) if len(node.inputs) > 3 else list(range(len(starts)))
    steps = reader.plain(node.inputs[4]) if len(node.inputs) > 4 else [1] * len(starts)
    found = list(indices)
    for start, axis, step in zip(starts, axes, steps, strict=True):
        if step < 1:
            raise NotAffineError
        first = start if start >= 0 else start + shape[axis]
        found[axis] = found[axis].times(step).plus(first)
    return reader.read(node.inputs[0], tuple(found))


def _bounds(reader: Reader, name: str) -> list[int]:
    """Read a constant vector, elements of which may be symbolic lengths."""
    constant = reader.algebra.graph.constant(name)
    if isinstance(constant, SymbolicConstant):
        return list(constant.elements.reshape(-1))
    return reader.plain(name)


def _concatenated(reader: Reader, node: Node, indices: Indices) -> Cases:
    """Follow an element into its part, which its index must name."""
    axis = node.integer("axis", 0)
    axis %= len(indices)
    left = number_as_integer(indices[axis])
    for name in node.inputs:
        length = reader.shape(name)[axis]
        if left < length:
            found = (*indices[:axis], Affine(constant=left), *indices[axis + 1 :])
            return reader.read(name, found)
        left -= length
    raise NotAffineError


def _gathered(reader: Reader, node: Node, indices: Indices) -> Cases:
    rank = len(reader.shape(node.inputs[1]))
    source = reader.shape(node.inputs[0])
    axis = node.integer("axis", 0)
    axis %= len(source)
    place = reader.one(node.inputs[1], indices[axis : axis + rank])
    if not place.terms and place.constant < 0:
        place = place.plus(source[axis])
    return reader.read(node.inputs[0], (*indices[:axis], place, *indices[axis + rank :]))


def _gathered_apart(reader: Reader, node: Node, indices: Indices) -> Cases:
    """Follow GatherND, whose last axis of indices has one for each axis of the source."""
    rank = len(reader.shape(node.inputs[1]))
    count = reader.shape(node.inputs[1])[-1]
    if node.attributes.get("batch_dims", 0):
        raise NotAffineError
    own = indices[: rank - 1]
    places = [
        reader.one(node.inputs[1], (*own, Affine(constant=place))) for place in range(int(count))
    ]
    return reader.read(node.inputs[0], (*places, *indices[rank - 1 :]))


def _ranged(reader: Reader, node: Node, indices: Indices) -> Cases:
    start, _, step = (reader.read(name, ()) for name in node.inputs)
    return reader.space.combine(
        lambda first, each: single(
            _affine(first) + indices[0].times(number_as_integer(each))
        ),
        start,
        step,
    )  # fmt: skip


def _affine(leaf: Leaf) -> Affine:
    if isinstance(leaf, float):
        raise NotAffineError
    return leaf


def _chosen(reader: Reader, node: Node, indices: Indices) -> Cases:
    condition, first, second = (reader.read(name, indices) for name in node.inputs)
    return reader.space.combine(
        lambda kept, one, other: single(one if number(kept) else other), condition, first, second
    )


def _converted(reader: Reader, node: Node, indices: Indices) -> Cases:
    """Convert constants; integers that are not, or whole floats, are left as they are."""
    target = reader.algebra.graph.value(node.outputs[0]).dtype
    is_float = target is not None and target.numpy.kind == "f"

    def convert(leaf: Leaf) -> Cases:
        if isinstance(leaf, Affine) and leaf.terms:
            if target is DType.BOOL:
                raise NotAffineError
            return single(leaf)
        value = number(leaf)
        if target is DType.BOOL:
            return single(TRUE if value else FALSE)
        if is_float:
            return single(float(value))
        if isinstance(value, float):
            raise NotAffineError
        return single(leaf)

    return reader.space.combine(convert, reader.read(node.inputs[0], indices))


def _trimmed(reader: Reader, node: Node, indices: Indices) -> Cases:
    """Follow Trilu: zeros above or below a diagonal."""
    diagonal = reader.plain(node.inputs[1])[0] if len(node.inputs) > 1 and node.inputs[1] else 0
    ahead = (indices[-1] - indices[-2]).plus(-diagonal)
    is_kept = ahead if node.attributes.get("upper", 1) else ahead.times(-1)
    inside = reader.read(node.inputs[0], indices)
    value = reader.algebra.graph.value(node.outputs[0]).dtype
    zero: Leaf = 0.0 if value is not None and value.numpy.kind == "f" else FALSE
    kept = (((is_kept,), TRUE), ((negated(is_kept),), FALSE))
    return reader.space.combine(
        lambda flag, leaf: single(leaf if number(flag) else zero), kept, inside
    )


Follow = Callable[[Reader, Node, Indices], Cases]
MOVES: Mapping[str, Follow] = {
    "Unsqueeze": _reshaped,
    "Squeeze": _reshaped,
    "Reshape": _reshaped,
    "Expand": _expanded,
    "Transpose": _transposed,
    "Slice": _sliced,
    "Concat": _concatenated,
    "Gather": _gathered,
    "GatherND": _gathered_apart,
    "Range": _ranged,
}
CHOICES: Mapping[str, Follow] = {"Where": _chosen, "Cast": _converted, "Trilu": _trimmed}
