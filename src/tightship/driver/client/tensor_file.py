"""Client's `.safetensors` files, whose tensors are constants of models in place."""

import os

import numpy as np

from tightship.driver.client.file_pool import FilePool
from tightship.driver.client.session import Session
from tightship.driver.types.elements import value_type
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import PoolMode
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError
from tightship.public_calls import public_methods
from tightship.safetensors import StoredTensor, read_tensors

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
