"""NonMaxSuppression: keeps the highest-scored of overlapping boxes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.graph import Node

INT64_MAX = np.iinfo(np.int64).max


def non_max_suppression(node: Node, _: MakeRun) -> ReferenceRun:
    """Make the node ready to run: rows of batch, class and box, best first in each class."""
    centred = node.attributes.get("center_point_box", 0) == 1

    def run(operands: Sequence[Any]) -> list[Any]:
        boxes, scores = operands[:2]
        count, overlap, least = (
            None if operand is None else np.asarray(operand).reshape(-1)[0]
            for operand in (*operands[2:], None, None, None)[:3]
        )
        most = 0 if count is None else min(int(count), INT64_MAX)
        rows = [np.empty((0, 3), np.int64)]
        for batch, (corners, of_classes) in enumerate(
            zip(_corners(boxes, centred=centred), scores, strict=True)
        ):
            for index, each in enumerate(of_classes):
                taken = _taken(corners, each, (most, overlap or np.float32(0), least))
                rows += [np.array([[batch, index, box] for box in taken], np.int64).reshape(-1, 3)]
        return [np.concatenate(rows)]

    return run


def _corners(boxes: Array, *, centred: bool) -> Array:
    """Convert boxes (images, boxes, 4) to their lowest and highest coordinates."""
    if centred:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([middle - half, middle + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _taken(corners: Array, scores: Array, limits: tuple[int, Any, Any]) -> list[int]:
    """Select boxes of one class by falling score, without too much overlap with earlier ones."""
    most, overlap, least = limits
    left = np.argsort(-scores, kind="stable")
    if least is not None:
        left = left[scores[left] > least]
    taken: list[int] = []
    while left.size and len(taken) < most:
        taken.append(int(left[0]))
        left = left[1:]
        left = left[~(_overlaps(corners[taken[-1]], corners[left]) > overlap)]
    return taken


def _overlaps(box: Array, others: Array) -> Array:
    """Compute intersection over union with each of the others; 0 for empty boxes."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.maximum(sides, 0).prod(1)
    area, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(1)
    whole = area + areas - shared
    is_real = (area > 0) & (areas > 0) & (whole > 0)
    result: Array = np.where(is_real, shared / np.where(is_real, whole, 1), 0)
    return result
