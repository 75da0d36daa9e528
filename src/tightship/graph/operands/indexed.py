"""Operand rules of operators that read or write at given indices, and of losses."""

from itertools import pairwise

from tightship.graph.layout import Dimension, Shape
from tightship.graph.operands.operands import MisfitError, Operands, text


def gather_elements(at: Operands) -> None:
    _along_axis(at, at.shape(0, 1), at.shape(1))


def scatter_elements(at: Operands) -> None:
    indices = at.shape(1)
    _along_axis(at, at.shape(0, 1), indices)
    at.require(2, indices)


def _along_axis(at: Operands, data: Shape, indices: Shape) -> None:
    """Require that indices exceed the data only along the axis that they index."""
    at.require_rank(1, len(data))
    axis = at.axis("axis", 0, len(data))
    for place, (most, count) in enumerate(zip(data, indices, strict=True)):
        if place != axis and isinstance(most, int) and isinstance(count, int) and count > most:
            at.refuse(1, f"dimension {place} may be at most {most}, as of `{at.names[0]}`")


def gather_nd(at: Operands) -> None:
    data, indices = at.shape(0, 1), at.shape(1, 1)
    batch = at.integer("batch_dims", 0)
    if not 0 <= batch < min(len(data), len(indices)):
        raise MisfitError(
            f"batch_dims is {batch}, which must be at least 0 and below the ranks of "
            f"`{at.names[0]}`, {text(data)}, and `{at.names[1]}`, {text(indices)}"
        )
    at.require(1, (*data[:batch], *(None,) * (len(indices) - batch)))
    _tuples(at, indices[-1], len(data) - batch)
    if indices[-1] == 0:
        at.refuse(1, "the last dimension must be at least 1")


def scatter_nd(at: Operands) -> None:
    data, indices = at.shape(0, 1), at.shape(1, 1)
    count = indices[-1]
    if isinstance(count, int):
        _tuples(at, count, len(data))
        at.require(2, (*indices[:-1], *data[count:]))


def _tuples(at: Operands, count: Dimension, most: int) -> None:
    if isinstance(count, int) and count > most:
        at.refuse(1, f"the last dimension may be at most {most}")


def loss(at: Operands) -> None:
    scores = at.shape(0, 2)
    at.require(1, (scores[0], *scores[2:]))
    at.require(2, (scores[1],))


def reverse_sequence(at: Operands) -> None:
    x = at.shape(0, 2)
    at.require(1, (x[at.axis("batch_axis", 1, len(x))],))


def tensor_scatter(at: Operands) -> None:
    past = at.shape(0, 1)
    axis = at.axis("axis", -2, len(past))
    at.require(1, (*past[:axis], None, *past[axis + 1 :]))
    update = at.find(1)
    most, count = past[axis], None if update is None else update[axis]
    if isinstance(most, int) and isinstance(count, int) and count > most:
        at.refuse(1, f"dimension {axis} may be at most {most}, as of `{at.names[0]}`")
    at.require(2, past[:1])


def non_max_suppression(at: Operands) -> None:
    boxes = at.shape(0)
    at.require(0, (None, None, 4))
    at.require(1, (boxes[0], None, boxes[1]))
    at.require_one(2, 3, 4)


def one_hot(at: Operands) -> None:
    at.require_one(1)
    at.require(2, (2,))


def compress(at: Operands) -> None:
    at.require_rank(1, 1)


def einsum(at: Operands) -> None:
    """Require that each letter stands for one length; axes of length 1 broadcast."""
    equation = at.attributes.get("equation", "")
    terms = str(equation).replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(at.names):
        raise MisfitError(f"equation {equation!r} is for {len(terms)} operands")
    lengths: dict[str, int] = {}
    for place, term in enumerate(terms):
        shape = at.find(place)
        if shape is None:
            continue
        first, dots, last = term.partition("...")
        if len(shape) < len(first + last) or (not dots and len(shape) != len(first)):
            at.refuse(place, f"a rank as of `{term}` is needed")
        named = [*zip(first, shape, strict=False)]
        named += zip(last, shape[len(shape) - len(last) :], strict=True)
        for letter, length in named:
            if not isinstance(length, int) or length == 1:
                continue
            if lengths.setdefault(letter, length) != length:
                at.refuse(place, f"`{letter}` must be {lengths[letter]}, as before it")


def same_lengths(at: Operands) -> None:
    """Require that starts, ends, axes and steps of a Slice are lists of one length."""
    given = [place for place in range(1, len(at.names)) if at.find(place) is not None]
    for place in given:
        at.require_rank(place, 1)
    for before, after in pairwise(given):
        at.require(after, at.shape(before))
