"""Operators that compute elements from shapes and scalars, on arrays of any shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel_context import require
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.graph import Inline, Node


def shape(node: Node, _: MakeRun) -> ReferenceRun:
    start, end = node.integer("start", 0), node.attributes.get("end")
    return lambda operands: [np.array(operands[0].shape[start:end], np.int64)]


def size(_node: Node, _: MakeRun) -> ReferenceRun:
    return lambda operands: [np.array(operands[0].size, np.int64)]


def filled(node: Node, _: MakeRun) -> ReferenceRun:
    value = node.attributes.get("value")
    require(value is None or isinstance(value, Inline))
    element = value.array().reshape(-1)[0] if isinstance(value, Inline) else np.float32(0)
    require(element.dtype.kind in "biuf")
    return lambda operands: [np.full(tuple(operands[0].tolist()), element)]


def count_from(_node: Node, _: MakeRun) -> ReferenceRun:
    def run(operands: Sequence[Any]) -> list[Any]:
        start, limit, step = (each.reshape(()) for each in operands)
        require(step != 0)
        if start.dtype.kind == "f":
            count = int(max(np.ceil((float(limit) - float(start)) / float(step)), 0))
        else:
            count = max(-((int(start) - int(limit)) // int(step)), 0)
        return [np.arange(count).astype(start.dtype) * step + start]

    return run
