"""Scales of filters quantized channel by channel: an operand's extra parameters."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.status import invalid

_AXIS = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class PerChannel:
    """Scales of a tensor quantized by channel; all zero points are 0.

    Attributes:
        axis: Axis of the channels.
        scales: Scale of each channel.
    """

    axis: int
    scales: tuple[float, ...]

    def encoded(self) -> bytes:
        """Encode as extra parameters: the axis as u32, then scales as float32."""
        return _AXIS.pack(self.axis) + struct.pack(f"<{len(self.scales)}f", *self.scales)


def per_channel_of(extra_params: bytes, dimensions: Dimensions, name: str) -> PerChannel:
    """Decode the extra parameters of a tensor with these dimensions.

    Raises:
        DriverError: INVALID_ARGUMENT: too short, or they do not fit the tensor.
    """
    if len(extra_params) < _AXIS.size or len(extra_params) % 4:
        raise invalid(
            f"{name} has {len(extra_params)} bytes of extra parameters; quantized by channel it "
            "needs an axis (u32) and a scale (float32) for each channel."
        )
    (axis,) = _AXIS.unpack_from(extra_params)
    scales = struct.unpack_from(f"<{len(extra_params) // 4 - 1}f", extra_params, _AXIS.size)
    if axis >= len(dimensions) or dimensions[axis] != len(scales):
        raise invalid(
            f"{name} has {len(scales)} scales along axis {axis} and dimensions "
            f"{list(dimensions)}; it needs one scale for each element of one of its axes."
        )
    if not _are_scales(scales):
        raise invalid(f"{name} has a scale for a channel that is not above 0.")
    return PerChannel(axis, scales)


def _are_scales(scales: Sequence[float]) -> bool:
    return all(math.isfinite(scale) and scale > 0 for scale in scales)
