"""Losses of modules by name, with labels of the shape that the module's output asks for."""

from collections.abc import Callable

import torch
from torch.nn import functional

from tightship.errors import InputError

Loss = Callable[..., torch.Tensor]


def named_loss(name: str, output: object, classes_axis: int | None) -> tuple[Loss, torch.Tensor]:
    """Return a loss by its name as in `tightship.train`, and labels on the processor for it.

    Args:
        name: `cross_entropy` or `squared_error`.
        output: Output of the module, of which only type and shape count.
        classes_axis: Axis of classes in the scores of a cross entropy.

    Raises:
        InputError: The name is unknown, or the output is not a tensor that the loss takes.
    """
    if name not in ("cross_entropy", "squared_error"):
        raise InputError(
            f"Unknown loss `{name}` of a module; choose `cross_entropy` or `squared_error`, give "
            "a function of the module's output and labels, or None if the module returns its loss."
        )
    if not isinstance(output, torch.Tensor):
        raise InputError(
            f"The module returns `{type(output).__name__}`, of which the loss `{name}` cannot take "
            "a tensor; give a function as `loss`, such as `lambda output, labels: ...`."
        )
    if name == "squared_error":
        return functional.mse_loss, torch.empty_like(output)
    axis = _axis(output, classes_axis)
    shape = tuple(output.select(axis, 0).shape)

    def cross_entropy(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(scores.movedim(axis, 1), labels)

    return cross_entropy, torch.empty_like(output.select(axis, 0), dtype=torch.int64).view(shape)


def _axis(scores: torch.Tensor, classes_axis: int | None) -> int:
    shape = list(scores.shape)
    if scores.ndim < 2:
        raise InputError(
            f"The module returns a tensor of the shape {shape}; scores of a cross entropy have an "
            "axis of samples and one of classes."
        )
    if classes_axis is None and scores.ndim == 3:
        raise InputError(
            f"The module returns scores of the shape {shape}, whose classes may lie on axis 1 or "
            "2; give `classes_axis`."
        )
    axis = 1 if classes_axis is None else classes_axis
    if axis not in (1, scores.ndim - 1, -1):
        raise InputError(
            f"`classes_axis` is {axis}; scores of the shape {shape} have their classes on axis 1 "
            "or the last."
        )
    count: int = scores.ndim
    return axis % count
