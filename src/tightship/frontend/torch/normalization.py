"""Normalizations at inference."""

import math
from collections.abc import Callable

import numpy as np

from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.writer import Operand
from tightship.graph import Fill

Results = tuple[Operand | None, ...]


def by_layer(call: Call) -> Operand:
    """Translate LayerNorm."""
    operand: Operand = call["input"]
    shape = tuple(call["normalized_shape"])
    scale, bias = filled_like(call, "weight", shape, 1), call["bias"]
    axis, epsilon = -len(shape), float(call["eps"])
    return call.result("LayerNormalization", operand, scale, bias, axis=axis, epsilon=epsilon)


def by_layer_with_statistics(call: Call) -> Results:
    """Translate LayerNorm; mean and deviation are not returned."""
    return by_layer(call), None, None


def by_batch(call: Call) -> Results:
    """Translate BatchNorm by running statistics."""
    operand: Operand = call["input"]
    channels = (operand.shape[1],)
    result = call.result(
        "BatchNormalization",
        operand,
        filled_like(call, "weight", channels, 1),
        filled_like(call, "bias", channels, 0),
        call["running_mean"],
        call["running_var"],
        epsilon=float(call["eps"]),
    )
    return result, None, None


def in_training(call: Call) -> Results:
    """Refuse BatchNorm by statistics of the batch."""
    raise refused(
        call.node,
        "normalizes by the batch, as in training",
        "call `model.eval()` before the export",
    )


def by_instance(call: Call) -> Operand:
    """Translate InstanceNorm."""
    operand: Operand = call["input"]
    if call["running_mean"] is not None and not call["use_input_stats"]:
        result, *_ = by_batch(call)
        assert result is not None
        return result
    channels = (operand.shape[1],)
    scale = filled_like(call, "weight", channels, 1)
    bias = filled_like(call, "bias", channels, 0)
    return call.result("InstanceNormalization", operand, scale, bias, epsilon=float(call["eps"]))


def by_group(call: Call) -> Operand:
    """Translate GroupNorm, as InstanceNormalization of a row for each group."""
    operand: Operand = call["input"]
    groups: int = call["num_groups"]
    count = math.prod(operand.shape[1:]) // groups
    rows = call.reshaped(operand, (operand.shape[0], groups, count))
    ones = call.held(np.ones(groups, call.dtype.numpy))
    zeros = call.held(np.zeros(groups, call.dtype.numpy))
    epsilon = float(call["eps"])
    result = call.like("InstanceNormalization", rows, ones, zeros, epsilon=epsilon)
    result = call.reshaped(result, operand.shape)
    shape = (operand.shape[1], *[1] * (operand.rank - 2))
    for operator, factor in (("Mul", call["weight"]), ("Add", call["bias"])):
        if factor is not None:
            result = call.like(operator, result, call.reshaped(factor, shape))
    return result


def filled_like(call: Call, name: str, shape: tuple[int, ...], number: int) -> Operand:
    """Return an argument, or a tensor of `number` if it is absent."""
    given: Operand | None = call[name]
    operand: Operand = call["input"]
    element = np.array(number).astype(operand.dtype.numpy)
    return given or call.writer.constant(f"{call.stem}.held", Fill(element, shape))


TABLE: dict[str, Callable[[Call], Operand | Results]] = {
    "_native_batch_norm_legit.default": in_training,
    "_native_batch_norm_legit.no_stats": in_training,
    "_native_batch_norm_legit_functional.default": in_training,
    "_native_batch_norm_legit_no_training.default": by_batch,
    "group_norm.default": by_group,
    "instance_norm.default": by_instance,
    "layer_norm.default": by_layer,
    "native_layer_norm.default": by_layer_with_statistics,
}
