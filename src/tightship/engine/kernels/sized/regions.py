"""RoiAlign: regions of images, sampled to one size."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship._core import roi_align
from tightship.engine.kernels.kernel_context import require
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.graph import Node

HALF_PIXEL_VERSION = 16
"""First opset whose coordinates count from the corner of a pixel unless the node says otherwise."""


def settings_of(node: Node) -> tuple[tuple[int, int], int, float, bool, bool]:
    """Return rows and columns of a result, samples along an axis of a cell, and the scale.

    Behind them, whether coordinates count from a pixel's corner, and whether the largest tap counts
    instead of the mean.
    """
    size = node.integer("output_height", 1), node.integer("output_width", 1)
    samples, scale = node.integer("sampling_ratio", 0), node.number("spatial_scale", 1.0)
    usual = "half_pixel" if node.version >= HALF_PIXEL_VERSION else "output_half_pixel"
    is_half_pixel = _text(node, "coordinate_transformation_mode", usual) == "half_pixel"
    return size, samples, scale, is_half_pixel, _text(node, "mode", "avg") == "max"


def align(node: Node, _: MakeRun) -> ReferenceRun:
    """Make the node ready to run on float32."""
    size, samples, scale, is_half_pixel, is_largest = settings_of(node)

    def run(operands: Sequence[Any]) -> list[Any]:
        image, regions, owners = map(np.ascontiguousarray, operands)
        out = np.empty((len(regions), image.shape[1], *size), np.float32)
        require(image.dtype == regions.dtype == np.float32 and image.size > 0)
        if out.size:
            owners = owners.astype(np.int64, copy=False)
            roi_align(image, regions, owners, out, samples, scale, is_half_pixel, is_largest)
        return [out]

    return run


def _text(node: Node, name: str, default: str) -> str:
    value = node.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)
