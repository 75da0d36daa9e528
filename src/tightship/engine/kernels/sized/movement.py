"""Operators that move elements, or give them another shape, on arrays of any shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel_context import axis_of, covered, require
from tightship.engine.kernels.movement import clamped
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.engine.kernels.sized.axes import axes_of, integers
from tightship.graph import Node


def reshape(node: Node, _: MakeRun) -> ReferenceRun:
    keeps_zero = node.integer("allowzero", 0)

    def run(operands: Sequence[Any]) -> list[Any]:
        x, lengths = operands[0], covered(integers(node, "shape", operands, 1))
        if not keeps_zero:
            lengths = tuple(x.shape[axis] if n == 0 else n for axis, n in enumerate(lengths))
        return [x.reshape(lengths)]

    return run


def flatten(node: Node, _: MakeRun) -> ReferenceRun:
    axis = node.integer("axis", 1)

    def run(operands: Sequence[Any]) -> list[Any]:
        shape = operands[0].shape
        rows = int(np.prod(shape[:axis], dtype=np.int64))
        return [operands[0].reshape(rows, int(np.prod(shape[axis:], dtype=np.int64)))]

    return run


def squeeze(node: Node, _: MakeRun) -> ReferenceRun:
    return lambda operands: [np.squeeze(operands[0], axes_of(node, operands, 1, operands[0].ndim))]


def unsqueeze(node: Node, _: MakeRun) -> ReferenceRun:
    def run(operands: Sequence[Any]) -> list[Any]:
        return [np.expand_dims(operands[0], covered(integers(node, "axes", operands, 1)))]

    return run


def transpose(node: Node, _: MakeRun) -> ReferenceRun:
    order = node.attributes.get("perm")
    return lambda operands: [np.ascontiguousarray(operands[0].transpose(order))]


def concat(node: Node, _: MakeRun) -> ReferenceRun:
    axis = node.integer("axis", 1)
    return lambda operands: [np.concatenate(operands, axis)]


def take_slice(node: Node, _: MakeRun) -> ReferenceRun:
    def run(operands: Sequence[Any]) -> list[Any]:
        x = operands[0]
        starts = integers(node, "starts", operands, 1) or ()
        ends = integers(node, "ends", operands, 2) or ()
        axes = axes_of(node, operands, 3, x.ndim) or range(len(starts))
        steps = integers(node, "steps", operands, 4) or (1,) * len(starts)
        index = [slice(None)] * x.ndim
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            index[axis] = clamped(start, end, step, x.shape[axis])
        return [x[tuple(index)]]

    return run


def split(node: Node, _: MakeRun) -> ReferenceRun:
    """Split into given or equal lengths; the last part of equal ones may be shorter."""
    axis, count = node.integer("axis", 0), len(node.outputs)

    def run(operands: Sequence[Any]) -> list[Any]:
        x = operands[0]
        lengths = integers(node, "split", operands, 1)
        place = axis_of(axis, x.ndim)
        if lengths is None:
            each = -(-x.shape[place] // count)
            lengths = (each,) * count
        require(all(length >= 0 for length in lengths) and len(lengths) == count)
        ends = np.cumsum(lengths)
        return np.split(x, ends[:-1], place)

    return run


def expand(_node: Node, _: MakeRun) -> ReferenceRun:
    """Return a view: detectors expand the places of regions to a hundred MiB of elements."""

    def run(operands: Sequence[Any]) -> list[Any]:
        x, lengths = operands
        shape = np.broadcast_shapes(x.shape, tuple(lengths.tolist()))
        return [np.broadcast_to(x, shape)]

    return run


def tile(node: Node, _: MakeRun) -> ReferenceRun:
    require(node.version >= 6)
    return lambda operands: [np.tile(operands[0], tuple(operands[1].tolist()))]
