"""NonMaxSuppression: keeps the highest-scored of overlapping boxes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship._core import suppress, suppression_bytes
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.graph import Node

INT64_MAX = np.iinfo(np.int64).max


def non_max_suppression(node: Node, _: MakeRun) -> ReferenceRun:
    """Make the node ready to run: rows of batch, class and box, best first in each class."""
    is_centred = node.attributes.get("center_point_box", 0) == 1

    def run(operands: Sequence[Any]) -> list[Any]:
        boxes, scores = map(np.ascontiguousarray, operands[:2])
        count, overlap, least = (
            None if operand is None else np.asarray(operand).reshape(-1)[0]
            for operand in (*operands[2:], None, None, None)[:3]
        )
        most = 0 if count is None else min(max(int(count), 0), INT64_MAX)
        row_bytes, scratch_bytes = suppression_bytes(boxes, scores, most)
        rows, scratch = (np.empty(size, np.uint8) for size in (row_bytes, scratch_bytes))
        limits = most, float(overlap or 0), None if least is None else float(least)
        found = suppress(boxes, scores, *limits, is_centred, rows, scratch)
        return [rows.view(np.int64).reshape(-1, 3)[:found].copy()]

    return run
