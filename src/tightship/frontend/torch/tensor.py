"""Conversion of torch's tensors to types and constants; the bytes stay in torch's memory."""

from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch._subclasses.fake_tensor import FakeTensor

from tightship.errors import GraphError, InputError
from tightship.graph import Constant, Derived, DType, Inline, Mapped, MappedFile
from tightship.graph.absent import absent
from tightship.graph.constant import Array

HELD_BYTES_MAX = 512
"""Size up to which a constant is small, so that passes may read its elements."""

_NAMES = {str(dtype.value): dtype for dtype in DType}


def dtype_of(dtype: torch.dtype, owner: str) -> DType:
    """Return the element type of the same name.

    Raises:
        GraphError: No element type has this name; the message begins with `owner`.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in _NAMES:
        raise GraphError(f"{owner} has the element type `{name}`, which no ONNX operator takes.")
    return _NAMES[name]


def has_elements(tensor: torch.Tensor) -> bool:
    """Whether a tensor has memory; fake ones, and those of the device `meta`, have none."""
    return not (tensor.is_meta or isinstance(tensor, FakeTensor))


def constant_of(tensor: torch.Tensor, name: str) -> Constant:
    """Return a dense tensor as a constant that refers to its memory; strided ones are copied.

    A tensor without memory becomes a constant without elements.

    Raises:
        GraphError: No ONNX element type matches.
        InputError: It is not a dense tensor in the processor's memory.
    """
    if tensor.device.type not in ("cpu", "meta") or tensor.layout is not torch.strided:
        raise InputError(
            f"Tensor `{name}` is {str(tensor.layout).removeprefix('torch.')} on `{tensor.device}`; "
            "export the model with dense tensors on the processor: `model.cpu()`."
        )
    dtype = dtype_of(tensor.dtype, f"Tensor `{name}`")
    shape = tuple(tensor.shape)
    if not has_elements(tensor):
        return absent(name, dtype, shape, HELD_BYTES_MAX)
    if tensor.nbytes <= HELD_BYTES_MAX:
        return Inline(_elements(_bytes(tensor), dtype, shape))
    if not tensor.is_contiguous():
        return Derived(dtype, shape, partial(_gathered, tensor, dtype))
    file = MappedFile.of_bytes(_bytes(tensor).data.toreadonly(), Path(f"<{name}>"))
    return Mapped(file, 0, dtype, shape)


def _gathered(tensor: torch.Tensor, dtype: DType) -> Array:
    return _elements(_bytes(tensor), dtype, tuple(tensor.shape))


def _elements(raw: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> Array:
    array: Array = raw.view(dtype.numpy).reshape(shape)
    array.flags.writeable = False
    return array


def _bytes(tensor: torch.Tensor) -> NDArray[np.uint8]:
    """Return a tensor's elements in order, copied only if not contiguous."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    raw: NDArray[np.uint8] = plain.reshape(-1).view(torch.uint8).numpy()
    return raw
