"""Gradients of matrix products: the other operand, transposed by the product itself."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from string import ascii_letters

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.backward.operators import DOMAIN, types_of
from tightship.graph.ir import AttributeValue

_Gradients = Iterator[tuple[int, str]]


def matmul(at: GradientContext) -> _Gradients:
    """Each operand's gradient reads the other operand.

    Leading axes of a left operand count as rows if the right one is a matrix: the gradient of a
    weight is one product, not a sum of products.
    """
    a, b = at.shape(at.x(0)), at.shape(at.x(1))
    whole = at.shape(at.dy)
    batch = whole[: len(whole) - (len(a) > 1) - (len(b) > 1)]
    a = a if len(a) > 1 else (1, *a)
    b = b if len(b) > 1 else (*b, 1)
    rows, inner, columns = a[-2], a[-1], b[-1]
    if len(b) == 2 and batch:
        rows *= prod(batch)
        batch, a = (), (rows, inner)
    dy = at.reshaped(at.dy, (*batch, rows, columns))
    if at.wants(1):
        product = _product(at, at.reshaped(at.x(0), a), dy, "transA")
        yield 1, _folded(at, product, at.x(1), b)
    if at.wants(0):
        product = _product(at, dy, at.reshaped(at.x(1), b), "transB")
        yield 0, _folded(at, product, at.x(0), a)


def _folded(at: GradientContext, gradient: str, target: str, shape: Sequence[int]) -> str:
    """Reshape the gradient of an operand as the product saw it to the operand's own shape."""
    have, rank = at.shape(gradient), len(shape)
    lead = len(have) - rank
    axes = [
        axis
        for axis, length in enumerate(have)
        if axis < lead or (axis < lead + rank - 2 and shape[axis - lead] == 1 != length)
    ]
    return at.reshaped(at.summed(gradient, axes), at.shape(target))


def _product(at: GradientContext, a: str, b: str, transposed: str) -> str:
    """Write a product of matrices, or of stacks whose leading axes are broadcast."""
    attributes: dict[str, AttributeValue] = {transposed: 1}
    if len(at.shape(a)) == len(at.shape(b)) == 2:
        return _gemm_of(at, a, b, attributes)
    types = types_of("TransposedMatMul", [at.type(a), at.type(b)], attributes)
    return at.tape.write("TransposedMatMul", (a, b), types, attributes, (DOMAIN, at.node.version))[
        0
    ]


def _gemm_of(at: GradientContext, a: str, b: str, attributes: Mapping[str, AttributeValue]) -> str:
    rows = at.shape(a)[1 if attributes.get("transA") else 0]
    columns = at.shape(b)[0 if attributes.get("transB") else 1]
    return at.op("Gemm", a, b, shape=(rows, columns), attributes=attributes)


def gemm(at: GradientContext) -> _Gradients:
    """Read the other operand for each operand's gradient, and nothing for C's."""
    a, b, dy = at.x(0), at.x(1), at.dy
    is_a, is_b = at.integer("transA", 0), at.integer("transB", 0)
    alpha = {"alpha": at.real("alpha", 1.0)}
    if at.wants(2):
        yield 2, at.scaled(at.summed_to(dy, at.x(2)), at.real("beta", 1.0))
    if at.wants(1):
        operands, flags = ((dy, a), (1, is_a)) if is_b else ((a, dy), (1 - is_a, 0))
        yield 1, _gemm_of(at, *operands, {"transA": flags[0], "transB": flags[1], **alpha})
    if at.wants(0):
        operands, flags = ((b, dy), (is_b, 1)) if is_a else ((dy, b), (0, 1 - is_b))
        yield 0, _gemm_of(at, *operands, {"transA": flags[0], "transB": flags[1], **alpha})


def contraction(at: GradientContext) -> _Gradients:
    """Einsum: a contraction of the gradient with the other operands, for each operand.

    An axis of only one operand was summed over; its gradient is repeated along it.
    """
    terms, result = _labels(at)
    lengths = dict(zip(result, at.shape(at.dy), strict=True))
    for place, term in enumerate(terms):
        lengths.update(zip(term, at.shape(at.x(place)), strict=True))
    for place, term in enumerate(terms):
        if len(set(term)) != len(term) or at.shape(at.x(place)) != tuple(lengths[n] for n in term):
            raise at.refusal(
                "is known where no operand has a label twice, and no axis of length 1 stands for "
                "a longer one"
            )
    for place, term in enumerate(terms):
        if not at.wants(place):
            continue
        others = [n for n in range(len(terms)) if n != place]
        known = set(result).union(*(terms[n] for n in others))
        kept = "".join(label for label in term if label in known)
        sources = ",".join((result, *(terms[n] for n in others)))
        gradient = at.op(
            "Einsum", at.dy, *(at.x(n) for n in others), shape=[lengths[n] for n in kept],
            attributes={"equation": f"{sources}->{kept}"},
        )  # fmt: skip
        open_ = [lengths[label] if label in known else 1 for label in term]
        yield place, at.expanded(at.reshaped(gradient, open_), at.shape(at.x(place)))


def _labels(at: GradientContext) -> tuple[list[str], str]:
    """Return the labels of the operands' axes and of the result's, with those of an ellipsis."""
    given = at.node.attributes["equation"]
    equation = (given.decode() if isinstance(given, bytes) else str(given)).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    named = Counter(label for label in left if label.isalpha())
    free = [label for label in ascii_letters if label not in named]
    ranks = [
        len(at.shape(at.x(place))) - len(term.replace("...", ""))
        for place, term in enumerate(terms)
    ]
    spread = "".join(free[: max(ranks)])
    if not arrow:
        dots = "..." if "..." in left else ""
        right = dots + "".join(sorted(label for label, count in named.items() if count == 1))
    written = [
        term.replace("...", spread[len(spread) - rank :])
        for term, rank in zip(terms, ranks, strict=True)
    ]
    return written, right.replace("...", spread)
