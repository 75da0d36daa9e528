"""Modules whose parameters have no memory: on the device `meta`, or fake tensors."""

import copy
from collections.abc import Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tightship.errors import InputError
from tightship.frontend.torch.examples import Examples
from tightship.frontend.torch.tensor import has_elements

Tensors = tuple[torch.Tensor, ...]


def tensors_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield parameters and buffers by name."""
    yield from module.named_parameters()
    yield from module.named_buffers()


def is_unallocated(module: torch.nn.Module) -> bool:
    """Whether a parameter or buffer of a module has no memory."""
    return not all(has_elements(tensor) for _, tensor in tensors_of(module))


def check_devices(module: torch.nn.Module) -> None:
    """Refuse a module on another device.

    Raises:
        InputError: A parameter or buffer is on another device than the processor or `meta`.
    """
    for name, tensor in tensors_of(module):
        if tensor.device.type not in ("cpu", "meta"):
            raise InputError(
                f"`{name}` of `{type(module).__name__}` is on `{tensor.device}`; models run on the "
                "processor: give `module.cpu()`, or plan the module on torch's device `meta`."
            )


def on_processor(
    module: torch.nn.Module, examples: Examples, labels: Tensors = ()
) -> tuple[torch.nn.Module, Examples, Tensors]:
    """Return a copy of a module, examples and labels of fake tensors on the processor.

    Code that makes masks or positions on the device of an input then makes real ones. Tied
    parameters stay tied.

    Raises:
        InputError: The module cannot be copied.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    memo: dict[int, object] = {}
    for part in module.modules():
        for tensor in (*part._parameters.values(), *part._buffers.values(), *vars(part).values()):
            if isinstance(tensor, torch.Tensor) and id(tensor) not in memo:
                memo[id(tensor)] = _fake(tensor, mode)
    try:
        copied: torch.nn.Module = copy.deepcopy(module, memo)
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"`{type(module).__name__}` cannot be copied without its weights, to be planned: "
            f"{error}; keep out of it what `copy.deepcopy` refuses."
        ) from error
    faked = tuple([_fake(label, mode) for label in labels])
    return copied, examples.mapped(lambda _, tensor: _fake(tensor, mode)), faked


def allocated(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor, or one with memory like it; pages that nothing is written to take none."""
    return tensor if has_elements(tensor) else empty(tensor, tuple(tensor.shape))


def empty(like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Allocate a tensor of a type on the processor; its pages are not touched."""
    return torch.empty(shape, dtype=like.dtype, device="cpu")


def _fake(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """Return a tensor on the processor with the type, shape and strides, without memory."""
    with mode:
        made = torch.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="cpu"
        )
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made
