"""Gradients of operators that select elements at computed positions, or write there."""

from collections.abc import Iterator, Mapping

import numpy as np

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.backward.operators import DOMAIN, Attributes
from tightship.graph.constant import Fill
from tightship.graph.layout import DType

_Gradients = Iterator[tuple[int, str]]


def largest(at: GradientContext) -> _Gradients:
    """Read the positions that the forward node chose."""
    if at.wants(0):
        places = at.tape.save(at.node, 1, (DType.INT64, at.shape(at.y)))
        shape, axis = at.shape(at.x()), at.integer("axis", -1)
        attributes: Attributes = {"axis": axis, "shape": shape}
        types, source = [(at.dtype(at.dy), shape)], (DOMAIN, at.node.version)
        yield 0, at.tape.write("GatherElementsGrad", (at.dy, places), types, attributes, source)[0]


def gather_tuples(at: GradientContext) -> _Gradients:
    """Read the indices; elements gathered more than once have the sum."""
    if not at.wants(0):
        return
    if at.integer("batch_dims", 0):
        raise at.refusal("is known without `batch_dims`")
    dtype, shape = at.type(at.x())
    zeros = at.tape.hold(f"d({at.x()}) before", Fill(np.zeros((), dtype.numpy), shape))
    attributes = {"reduction": "add"}
    yield 0, at.op("ScatterND", zeros, at.x(1), at.dy, shape=shape, attributes=attributes)


def scatter_elements(at: GradientContext) -> _Gradients:
    axis = at.integer("axis", 0)
    yield from _scatter(at, "ScatterElements", "GatherElements", {"axis": axis})


def scatter_tuples(at: GradientContext) -> _Gradients:
    yield from _scatter(at, "ScatterND", "GatherND", {})


def _scatter(
    at: GradientContext, scatter: str, gather: str, along: Mapping[str, int]
) -> _Gradients:
    """Read the indices; each update of one position has that position's gradient."""
    how = at.node.attributes.get("reduction", "none")
    if how not in ("none", b"none", "add", b"add"):
        raise at.refusal(f"is known for sums and for no reduction, not for {how!r}")
    if at.wants(2):
        shape = at.shape(at.x(2))
        yield 2, at.op(gather, at.dy, at.x(1), shape=shape, attributes=along)
    if not at.wants(0):
        return
    if how in ("add", b"add"):
        yield 0, at.dy
        return
    dtype, shape = at.type(at.x(2))
    nought = at.tape.filled(0, dtype, shape)
    yield 0, at.op(scatter, at.dy, at.x(1), nought, shape=at.shape(at.dy), attributes=along)


def running_sum(at: GradientContext) -> _Gradients:
    if at.wants(0):
        turned = {**at.node.attributes, "reverse": 1 - at.integer("reverse", 0)}
        yield 0, at.op("CumSum", at.dy, at.x(1), shape=at.shape(at.dy), attributes=turned)
