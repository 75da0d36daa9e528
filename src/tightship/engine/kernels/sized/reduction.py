"""Reductions, softmax and products, on arrays of any shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel_context import require
from tightship.engine.kernels.reference import Make, MakeRun, ReferenceRun
from tightship.engine.kernels.sized.axes import axes_of, operand
from tightship.engine.kernels.softmax import ONE_AXIS_VERSION
from tightship.graph import Node

EMPTY = {"maximum": -np.inf, "minimum": np.inf}
"""Results of reductions over no elements, of floating-point numbers."""


def reduced(name: str) -> Make:
    """Make reductions by a function of NumPy's."""
    function: np.ufunc = getattr(np, name)

    def make(node: Node, _: MakeRun) -> ReferenceRun:
        keeps = bool(node.integer("keepdims", 1))
        skips = bool(node.integer("noop_with_empty_axes", 0))

        def run(operands: Sequence[Any]) -> list[Any]:
            x = operands[0]
            axes = axes_of(node, operands, 1, x.ndim) or None
            require(axes is not None or not skips)
            lengths = x.shape if axes is None else [x.shape[axis] for axis in axes]
            if name in EMPTY and 0 in lengths:
                require(x.dtype.kind == "f")
                return [function.reduce(x, axes, keepdims=keeps, initial=EMPTY[name])]
            return [function.reduce(x, axes, x.dtype, keepdims=keeps)]

        return run

    return make


def softmax(node: Node, _: MakeRun) -> ReferenceRun:
    require(node.version >= ONE_AXIS_VERSION)
    axis = node.integer("axis", -1)

    def run(operands: Sequence[Any]) -> list[Any]:
        x = operands[0]
        require(x.size > 0)
        with np.errstate(all="ignore"):
            out = np.exp(x - x.max(axis, keepdims=True))
            out /= out.sum(axis, keepdims=True)
        return [out]

    return run


def matrix_product(_node: Node, _: MakeRun) -> ReferenceRun:
    def run(operands: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            return [np.matmul(*operands)]

    return run


def gemm(node: Node, _: MakeRun) -> ReferenceRun:
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    turns = node.integer("transA", 0), node.integer("transB", 0)

    def run(operands: Sequence[Any]) -> list[Any]:
        left, right = (x.T if turn else x for x, turn in zip(operands, turns, strict=False))
        require(left.dtype.kind == "f")
        with np.errstate(all="ignore"):
            out = np.matmul(left, right)
            if alpha != 1:
                out *= out.dtype.type(alpha)
            added = operand(operands, 2)
            if added is not None:
                out += added if beta == 1 else added * out.dtype.type(beta)
        return [out]

    return run
