"""Images of a client as memory for inputs and outputs."""

import mmap

import numpy as np
from numpy.typing import NDArray

from tightship.driver.client.segment import SIZE_BYTES_MAX
from tightship.driver.client.session import Released, Session
from tightship.driver.client.staging import InBuffer
from tightship.driver.protocol.messages import RegisterPool, UnregisterPool
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.pools import READ, WRITE, Image, PoolKind, PoolMode, row_bytes
from tightship.driver.types.status import invalid
from tightship.public_calls import public_methods


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
