"""Elementwise operators on arrays of any shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.kernel_context import require
from tightship.engine.kernels.logistic import logistic
from tightship.engine.kernels.reference import Make, MakeRun, ReferenceRun
from tightship.engine.kernels.sized.axes import operand
from tightship.graph import Node

CASTS = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip
"""Types of numbers, by ONNX's number for them."""
BROADCAST_VERSION = 7
"""First opset whose operands broadcast as NumPy's do."""


def ufunc(name: str) -> Make:
    """Make kernels of a function of NumPy's, by its name there."""
    function: np.ufunc = getattr(np, name)

    def make(node: Node, _: MakeRun) -> ReferenceRun:
        require(function.nin == 1 or node.version >= BROADCAST_VERSION)

        def run(operands: Sequence[Any]) -> list[Any]:
            with np.errstate(all="ignore"):
                return [function(*operands)]

        return run

    return make


def folded(name: str) -> Make:
    """Fold any number of operands from the left by a function of NumPy's."""
    function: np.ufunc = getattr(np, name)

    def make(_node: Node, _: MakeRun) -> ReferenceRun:
        def run(operands: Sequence[Any]) -> list[Any]:
            first, *others = operands
            for other in others:
                first = function(first, other)
            return [first]

        return run

    return make


def divide(node: Node, _: MakeRun) -> ReferenceRun:
    """Divide; quotients of integers are truncated toward zero."""
    require(node.version >= BROADCAST_VERSION)

    def run(operands: Sequence[Any]) -> list[Any]:
        left, right = operands
        with np.errstate(all="ignore"):
            if left.dtype.kind == "f":
                return [np.true_divide(left, right)]
            if left.dtype.kind == "i":
                left = left - np.fmod(left, right)
            return [np.floor_divide(left, right)]

    return run


def clip(node: Node, _: MakeRun) -> ReferenceRun:
    """Clip by inputs; a NaN stays NaN."""
    require(node.version >= 11)

    def run(operands: Sequence[Any]) -> list[Any]:
        x, low, high = operands[0], operand(operands, 1), operand(operands, 2)
        if low is not None:
            x = np.maximum(x, low.reshape(()))
        return [x if high is None else np.minimum(x, high.reshape(()))]

    return run


def where(_node: Node, _: MakeRun) -> ReferenceRun:
    return lambda operands: [np.where(*operands)]


def cast(node: Node, _: MakeRun) -> ReferenceRun:
    """Convert to integers by truncation, to bool by `x != 0`."""
    dtype = CASTS.get(node.integer("to", 0))
    require(dtype is not None)

    def run(operands: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            return [operands[0].astype(dtype)]

    return run


def relu(_node: Node, _: MakeRun) -> ReferenceRun:
    return lambda operands: [np.maximum(operands[0], operands[0].dtype.type(0))]


def sigmoid(_node: Node, _: MakeRun) -> ReferenceRun:
    def run(operands: Sequence[Any]) -> list[Any]:
        out: Array = np.empty_like(operands[0])
        with np.errstate(all="ignore"):
            logistic(operands[0], out)
        return [out]

    return run
