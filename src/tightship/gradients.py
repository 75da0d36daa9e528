"""Gradients of a graph: the backward pass as further nodes of the same graph."""

from tightship.graph.backward import (
    backward,
    parameters,
    with_cross_entropy,
    with_squared_error,
)

__all__ = ["backward", "parameters", "with_cross_entropy", "with_squared_error"]
