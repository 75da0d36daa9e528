"""Files of a client as memory for inputs and outputs."""

import math
import mmap
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tightship.driver.client.segment import SIZE_BYTES_MAX, Placed
from tightship.driver.client.session import Released, Session
from tightship.driver.client.staging import InBuffer
from tightship.driver.protocol.messages import RegisterPool, UnregisterPool
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.elements import value_type
from tightship.driver.types.model import DataLocation
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import READ, WRITE, Image, PoolKind, PoolMode, row_bytes
from tightship.driver.types.status import ErrorStatus, invalid
from tightship.errors import DriverError, InputError
from tightship.public_calls import public_methods
from tightship.safetensors import StoredTensor, read_tensors


@public_methods
class FilePool(Released):
    """File registered as a pool and mapped here.

    The driver maps it (SEALED: it cannot be shortened), reads and writes it by system calls (COPY),
    or maps it in a separate process (ISOLATED). In the last two modes, shortening the file only
    makes executions fail. This process must not touch an array beyond the end of a shortened file.

    Attributes:
        pool: Identifier of the pool.
    """

    def __init__(self, session: Session, file: int, mode: PoolMode, *, is_writable: bool) -> None:
        """Register a whole file; the descriptor stays the caller's.

        Raises:
            DriverError: INVALID_ARGUMENT: it is not a regular file, not open as needed, or not
                sealed.
            ValueError: It is empty.
        """
        protection = READ | (WRITE if is_writable else 0)
        access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        self._mapping: mmap.mmap | None = mmap.mmap(file, 0, mmap.MAP_SHARED, access)
        call = RegisterPool(PoolKind.MMAP_FD, len(self._mapping), protection, 0, mode=mode)
        self.pool = session.expect(PoolRegistered, call, (file,)).pool
        super().__init__(session, UnregisterPool(self.pool))

    def at(self, offset_bytes: int, shape: Sequence[int], dtype: DTypeLike) -> Placed:
        """Return the array at an offset.

        Args:
            offset_bytes: Offset in the file, in bytes.
            shape: Lengths of the array.
            dtype: Type of its elements.

        Raises:
            ValueError: The array exceeds the file, or the pool is closed.
        """
        if self._mapping is None:
            raise ValueError("The pool is closed.")
        element = np.dtype(dtype)
        count = math.prod(shape)
        array = np.frombuffer(self._mapping, element, count, offset_bytes).reshape(shape)
        return Placed(array, self.pool, DataLocation(0, offset_bytes, array.nbytes))

    def close(self) -> None:
        """Release the pool; its arrays stay valid here. Harmless when repeated."""
        self._mapping = None
        super().close()


_DTYPES = {"F32": "f4", "F16": "f2", "I32": "i4", "I8": "i1", "U8": "u1", "BOOL": "?"}


@public_methods
class TensorFile(FilePool):
    """File as a pool: mapped by the driver if it trusts it, else read by system calls.

    Attributes:
        tensors: Tensors by name.
    """

    def __init__(self, session: Session, path: str | os.PathLike[str]) -> None:
        """Register a file.

        Raises:
            FormatError: It is not in that format.
            OSError: It cannot be read.
        """
        with open(path, "rb") as file:
            self.tensors: dict[str, StoredTensor] = read_tensors(file.fileno())
            try:
                super().__init__(session, file.fileno(), PoolMode.SEALED, is_writable=False)
            except DriverError as error:
                if error.status != ErrorStatus.INVALID_ARGUMENT:
                    raise
                super().__init__(session, file.fileno(), PoolMode.COPY, is_writable=False)

    def place(self, name: str) -> tuple[int, ValueType]:
        """Return offset and type of a tensor, as `ModelBuilder.constant_in` takes them.

        Raises:
            InputError: The file has no such tensor, or NNAPI has no type for its elements.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            raise InputError(f"The file has no tensor `{name}`.")
        if tensor.dtype not in _DTYPES:
            raise InputError(
                f"Tensor `{name}` has elements `{tensor.dtype}`; NNAPI has {', '.join(_DTYPES)}."
            )
        return tensor.offset_bytes, value_type(np.dtype(_DTYPES[tensor.dtype]), tensor.shape, name)


@public_methods
class ImagePool(Released):
    """File with rows of pixels at a stride, registered as a pool and mapped here.

    It is used whole: its pixels, one after another, are a value. Padding between rows is untouched.

    Attributes:
        pool: Identifier of the pool.
        pixels: View of the pixels' bytes, (layers, height, bytes of a row); valid after `close`.
    """

    def __init__(
        self, session: Session, file: int, image: Image, mode: PoolMode, *, is_writable: bool
    ) -> None:
        """Register the first bytes of a file; the descriptor stays the caller's.

        Raises:
            DriverError: INVALID_ARGUMENT: the image does not fit the file, or the file the mode.
            ValueError: The file is shorter than the image.
        """
        layer_bytes = image.height * image.row_stride_bytes
        size_bytes = image.layers * layer_bytes
        if not 1 <= size_bytes <= SIZE_BYTES_MAX:
            raise invalid(
                f"{image} takes {size_bytes} bytes; it may take 1 to {SIZE_BYTES_MAX}, "
                "layers times height times row stride."
            )
        access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
        mapping = mmap.mmap(file, size_bytes, mmap.MAP_SHARED, access)
        whole = np.frombuffer(mapping, np.uint8)
        rows = whole.reshape(image.layers, image.height, image.row_stride_bytes)
        self.pixels: NDArray[np.uint8] = rows[:, :, : row_bytes(image)]
        protection = READ | (WRITE if is_writable else 0)
        call = RegisterPool(PoolKind.IMAGE, size_bytes, protection, 0, mode=mode, image=image)
        self.pool = session.expect(PoolRegistered, call, (file,)).pool
        super().__init__(session, UnregisterPool(self.pool))

    def of(self, *dimensions: int) -> InBuffer:
        """Return the image as an argument; `dimensions` complete those unknown to the model."""
        return InBuffer(self.pool, dimensions, is_token=False)
