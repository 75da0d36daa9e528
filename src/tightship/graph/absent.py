"""Constants whose type and shape are known, and whose elements are nowhere.

Such as parameters on torch's device `meta`: a model of them is planned, but cannot be run.
"""

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import numpy as np

from tightship.errors import InputError
from tightship.graph.constant import Array, Constant, Inline, Mapped
from tightship.graph.layout import DType, element_count, size_bytes
from tightship.graph.mapped_file import MappedFile

_STEP = (5**0.5 - 1) / 2
"""Part of the way from 0.5 to 1.5 between two stand-ins; irrational, so that none are equal."""


class AbsentBytes(MappedFile):
    """Bytes of a tensor that has none; nothing is allocated for them.

    Reading floats gives stand-ins, because passes fold small weights into others: numbers that are
    not equal, and neither 0 nor 1, so that the plan is that of trained weights.
    """

    def __init__(self, name: str, dtype: DType, size_bytes: int) -> None:
        """Stand for the bytes of a tensor.

        Args:
            name: Name of the tensor in errors.
            dtype: Type of its elements.
            size_bytes: Its size.
        """
        self.path, self._fd, self._map = Path(f"<{name}>"), None, b""
        self.name, self._dtype, self.size_bytes = name, dtype, size_bytes

    def bytes_at(self, offset: int, size: int) -> memoryview:  # noqa: ARG002 - all are alike
        """Return stand-ins.

        Raises:
            InputError: They are not floats: positions and masks decide about a plan.
        """
        if "float" not in self._dtype.value:
            raise InputError(
                f"The plan depends on the elements of `{self.name}` ({self._dtype.value}), which "
                "has none; give that tensor elements, on the processor, and leave the others "
                "without."
            )
        found = _stand_ins(self.name, self._dtype, size // self._dtype.itemsize)
        return memoryview(found.tobytes())

    def read_into(self, offset: int, room: memoryview) -> None:  # noqa: ARG002 - none is read
        """Refuse to copy bytes that do not exist.

        Raises:
            InputError: Always.
        """
        raise _refusal(self.name)


class AbsentInline(Inline):
    """Stand-ins of a small constant, whose elements passes may read."""

    __slots__ = ()


def absent(name: str, dtype: DType, shape: tuple[int, ...], held_bytes_max: int) -> Constant:
    """Return a constant without elements.

    Args:
        name: Name of the tensor in errors.
        dtype: Type of its elements.
        shape: Its lengths.
        held_bytes_max: Size up to which the constant would be an `Inline` if it had elements.
    """
    size = size_bytes(dtype, shape)
    if size <= held_bytes_max and "float" in dtype.value:
        found = _stand_ins(name, dtype, element_count(shape)).reshape(shape)
        found.flags.writeable = False
        return AbsentInline(found)
    return Mapped(AbsentBytes(name, dtype, size), 0, dtype, shape)


def is_absent(constant: Constant) -> bool:
    """Whether a constant has no elements."""
    return isinstance(constant, AbsentInline) or (
        isinstance(constant, Mapped) and isinstance(constant.file, AbsentBytes)
    )


def refuse_absent(constants: Iterable[tuple[str, Constant]]) -> None:
    """Refuse to run with constants without elements.

    Args:
        constants: Constants, each with its name.

    Raises:
        InputError: One has none.
    """
    for name, constant in constants:
        if is_absent(constant):
            raise _refusal(name)


def _stand_ins(name: str, dtype: DType, count: int) -> Array:
    start = crc32(name.encode()) % 4096
    numbers = 0.5 + (start + np.arange(count, dtype=np.float64)) * _STEP % 1
    return numbers.astype(dtype.numpy)


def _refusal(name: str) -> InputError:
    return InputError(
        f"`{name}` has a shape and no elements (torch's device `meta`, a `FakeTensor` or a "
        "`jax.ShapeDtypeStruct`), so that the model can be planned but not run; give it weights "
        "first: `module.to_empty(device='cpu')` and `load_state_dict` in torch."
    )
