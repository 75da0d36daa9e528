"""Gradient of attention, which recomputes the weights instead of keeping them."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.backward.operators import DOMAIN, Attributes, types_of
from tightship.graph.constant import Inline
from tightship.graph.layout import DType

_MASK, _PAST = 3, (4, 5, 6)
"""Indices of inputs: a mask; the past, and how much of it counts."""


@dataclass(frozen=True, slots=True)
class _Heads:
    """Operands with an axis for the heads of keys; query heads that share one are rows."""

    query: str
    key: str
    value: str
    count: int
    rows: int
    """Queries of one head."""


def attention_rule(at: GradientContext) -> Iterator[tuple[int, str]]:
    """Read queries, keys, values and the mask."""
    windows = [at.integer(f"{side}_window_size", -1) for side in ("left", "right")]
    is_other = any(at.has(place) for place in _PAST) or windows != [-1, -1]
    if is_other or at.real("softcap", 0.0) or any(at.gradients[1:]):
        raise at.refusal(
            "is known without past keys, padded lengths, windows and `softcap`, and of the first "
            "output"
        )
    if not any(at.wants(place) for place in range(4)):
        return
    query, key, value = (_split(at, place) for place in range(3))
    batch, count, rows, width = at.shape(query)
    shared = at.shape(key)[1]
    scale = at.real("scale", 1 / sqrt(width))
    folded = (batch, shared, count // shared * rows, width)
    heads = _Heads(at.scaled(at.reshaped(query, folded), scale), key, value, count, rows)
    weights = _weights(at, heads)
    dy = _headed(at, at.dy, count)
    dy = at.reshaped(dy, (*folded[:3], at.shape(dy)[-1]))
    if at.wants(2):
        yield 2, _joined(at, _product(at, weights, dy, "transA"), 2)
    if not any(at.wants(place) for place in (0, 1, 3)):
        return
    slope = _own(at, "SoftmaxGrad", _product(at, dy, value, "transB"), weights, {"axis": -1})
    if at.wants(1):
        yield 1, _joined(at, _product(at, slope, heads.query, "transA"), 1)
    if at.wants(0):
        product = at.scaled(at.op("MatMul", slope, key, shape=folded), scale)
        yield 0, _joined(at, at.reshaped(product, at.shape(query)), 0)
    if at.wants(_MASK):
        scores = at.reshaped(slope, (batch, count, rows, at.shape(key)[2]))
        yield _MASK, at.summed_to(scores, at.x(_MASK))


def _split(at: GradientContext, place: int) -> str:
    """Split queries, keys or values by heads."""
    return _headed(at, at.x(place), at.integer("kv_num_heads" if place else "q_num_heads", 0))


def _headed(at: GradientContext, name: str, count: int) -> str:
    shape = at.shape(name)
    if len(shape) == 4:
        return name
    batch, rows, width = shape
    return at.transposed(at.reshaped(name, (batch, rows, count, width // count)), (0, 2, 1, 3))


def _joined(at: GradientContext, gradient: str, place: int) -> str:
    """Give a gradient that is split by heads the shape of an input."""
    shape = at.shape(at.x(place))
    if len(shape) == 4:
        return at.reshaped(gradient, shape)
    return at.reshaped(at.transposed(gradient, (0, 2, 1, 3)), shape)


def _weights(at: GradientContext, heads: _Heads) -> str:
    """Write the attention weights: how much each query takes of each value."""
    scores = _product(at, heads.query, heads.key, "transB")
    folded = at.shape(scores)
    batch, length = folded[0], folded[-1]
    scores = at.reshaped(scores, (batch, heads.count, heads.rows, length))
    zero = at.number(0, scores)
    least = at.number(-65504.0 if at.dtype(scores) is DType.FLOAT16 else -3e38, scores)
    seen = []
    if at.has(_MASK) and at.dtype(at.x(_MASK)) is DType.BOOL:
        seen.append(at.x(_MASK))
        scores = _chosen(at, seen[0], scores, least)
    elif at.has(_MASK):
        scores = at.op("Add", scores, at.x(_MASK))
        hidden = at.op("IsInf", at.x(_MASK), dtype=DType.BOOL)
        seen.append(at.op("Not", hidden))
    if at.integer("is_causal", 0):
        triangle = Inline(np.tri(heads.rows, length, dtype=np.bool_))
        seen.append(at.tape.hold("gradient causal", triangle))
        scores = _chosen(at, seen[-1], scores, least)
    weights = at.op("Softmax", scores, attributes={"axis": -1})
    for mask in seen if at.has(_MASK) else ():  # a query that sees no key has weights of 0
        weights = _chosen(at, mask, weights, zero)
    return at.reshaped(weights, folded)


def _chosen(at: GradientContext, mask: str, scores: str, least: str) -> str:
    return at.op("Where", mask, scores, least, shape=at.shape(scores), dtype=at.dtype(scores))


def _product(at: GradientContext, a: str, b: str, transposed: str) -> str:
    return _own(at, "TransposedMatMul", a, b, {transposed: 1})


def _own(at: GradientContext, operator: str, a: str, b: str, attributes: Attributes) -> str:
    types = types_of(operator, [at.type(a), at.type(b)], attributes)
    return at.tape.write(operator, (a, b), types, attributes, (DOMAIN, at.node.version))[0]
