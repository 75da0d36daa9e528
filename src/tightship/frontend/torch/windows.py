"""Operators that read windows of an image: convolutions, pools and resizing."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.writer import Operand


def convolution(call: Call) -> Operand:
    """Translate a convolution, or a transposed one."""
    weight: Operand = call["weight"]
    axes = weight.rank - 2
    padding = _each(call["padding"], axes)
    attributes: dict[str, Any] = {
        "kernel_shape": weight.shape[2:],
        "strides": _each(call["stride"], axes),
        "pads": (*padding, *padding),
        "dilations": _each(call["dilation"], axes),
        "group": int(call["groups"]),
    }
    operator = "Conv"
    if call["transposed"]:
        operator = "ConvTranspose"
        attributes["output_padding"] = _each(call["output_padding"], axes)
    return call.result(operator, call["input"], weight, call["bias"], **attributes)


def largest(axes: int, call: Call) -> Operand | tuple[Operand | None, ...]:
    """Translate MaxPool; positions are not returned."""
    result = _pooled(call, axes, "MaxPool", {"dilations": _each(call["dilation"], axes)})
    return (result, None) if len(call.types) > 1 else result


def mean(axes: int, call: Call) -> Operand:
    """Translate AveragePool."""
    if call.arguments.get("divisor_override"):
        raise refused(call.node, f"divides by {call['divisor_override']} (`divisor_override`)")
    included = {"count_include_pad": int(call["count_include_pad"])}
    return _pooled(call, axes, "AveragePool", included)


def _pooled(call: Call, axes: int, operator: str, more: dict[str, Any]) -> Operand:
    attributes = {**pool_attributes(call, axes), **more}
    return _batched(call, axes, call["self"], operator, attributes)


def pool_attributes(call: Call, axes: int) -> dict[str, Any]:
    """Return the windows of a pool, or of its gradient, as attributes."""
    kernel, padding = _each(call["kernel_size"], axes), _each(call["padding"], axes)
    return {
        "kernel_shape": kernel,
        "strides": _each(call["stride"], axes) if call["stride"] else kernel,
        "pads": (*padding, *padding),
        "ceil_mode": int(call["ceil_mode"]),
    }


def mean_to_size(axes: int, call: Call) -> Operand:
    """Translate an adaptive AveragePool whose windows divide the image."""
    operand: Operand = call["self"]
    kernel = pools_to_size(call, operand.shape[-axes:], call.shape[-axes:])
    if set(call.shape[-axes:]) == {1}:
        return _batched(call, axes, operand, "GlobalAveragePool", {})
    attributes = {"kernel_shape": kernel, "strides": kernel}
    return _batched(call, axes, operand, "AveragePool", attributes)


def pools_to_size(call: Call, lengths: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Return the size of windows for a pool to a given size.

    Raises:
        GraphError: They do not divide the image.
    """
    if any(length % size for length, size in zip(lengths, wanted, strict=True)):
        raise refused(
            call.node,
            f"pools {list(lengths)} into {list(wanted)} windows of different sizes",
            "pool to a size that divides the image's",
        )
    return tuple(length // size for length, size in zip(lengths, wanted, strict=True))


def _batched(
    call: Call, axes: int, operand: Operand, operator: str, attributes: dict[str, Any]
) -> Operand:
    """Write the operator, with a batch of one if there is none."""
    if operand.rank == axes + 2:
        return call.result(operator, operand, **attributes)
    one = call.reshaped(operand, (1, *operand.shape))
    result = call.add(operator, (call.dtype, (1, *call.shape)), one, **attributes)
    return call.reshaped(result, call.shape)


def resized(mode: str, call: Call) -> Operand:
    """Translate a resize to the nearest pixels, or by interpolation."""
    operand: Operand = call["input"]
    is_nearest = mode == "nearest"
    aligned = "align_corners" if call.arguments.get("align_corners") else "half_pixel"
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": "asymmetric" if is_nearest else aligned,
        **({"nearest_mode": "floor"} if is_nearest else {}),
    }
    factors = call["scale_factors"]
    if factors is None:
        sizes = call.integers(*call.shape)
        return call.result("Resize", operand, None, None, sizes, **attributes)
    scales = call.numbers(1, 1, *factors)
    return call.result("Resize", operand, None, scales, **attributes)


def _each(given: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """Return a number for each axis; a single one is repeated."""
    numbers = [given] if isinstance(given, int) else list(given)
    return tuple(numbers * axes if len(numbers) == 1 else numbers)


TABLE: dict[str, Callable[[Call], Operand | tuple[Operand | None, ...]]] = {
    "_adaptive_avg_pool2d.default": partial(mean_to_size, 2),
    "_adaptive_avg_pool3d.default": partial(mean_to_size, 3),
    "adaptive_avg_pool1d.default": partial(mean_to_size, 1),
    "adaptive_avg_pool2d.default": partial(mean_to_size, 2),
    "avg_pool1d.default": partial(mean, 1),
    "avg_pool2d.default": partial(mean, 2),
    "avg_pool3d.default": partial(mean, 3),
    "convolution.default": convolution,
    "max_pool2d_with_indices.default": partial(largest, 2),
    "max_pool3d_with_indices.default": partial(largest, 3),
    "upsample_bilinear2d.vec": partial(resized, "linear"),
    "upsample_nearest2d.vec": partial(resized, "nearest"),
}
