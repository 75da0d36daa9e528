"""CUDA driver for tests on a real device: fills and reads memory, and keeps streams busy."""

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tightship.errors import LibraryError
from tightship.resource.virtual import CudaDevice

Address = ctypes.c_uint64
SEMAPHORE_BYTES = 32  # sem_t
WITHOUT_DEFAULT_STREAM = 1


def require_device() -> None:
    """Skip the module where there is no CUDA device."""
    try:
        CudaDevice(0)
    except LibraryError as error:
        pytest.skip(f"needs a CUDA device: {error}", allow_module_level=True)


class Driver:
    """Functions of the driver, with the primary context of the first device in each call."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()
        self._library.cuInit(0)
        self._check(self._library.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), 0))

    def _check(self, result: int) -> None:
        assert result == 0, f"the driver fails with error {result}"

    def call(self, name: str, *arguments: object) -> None:
        popped = ctypes.c_void_p()
        self._check(self._library.cuCtxPushCurrent_v2(self._context))
        try:
            self._check(self._library[name](*arguments))
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(popped))

    def fill(self, address: int, size_bytes: int, value: int, stream: int = 0) -> None:
        """Fill a block whose size is a multiple of 4 with one 32-bit value."""
        count = ctypes.c_size_t(size_bytes // 4)
        handle = ctypes.c_void_p(stream)
        self.call("cuMemsetD32Async", Address(address), ctypes.c_uint32(value), count, handle)

    def ends(self, address: int, size_bytes: int) -> tuple[int, int]:
        """Return the first and the last 32-bit value of a block, once all streams are done."""
        self.call("cuCtxSynchronize")
        values = []
        for at in (address, address + size_bytes - 4):
            value = ctypes.c_uint32()
            self.call("cuMemcpyDtoH_v2", ctypes.byref(value), Address(at), ctypes.c_size_t(4))
            values.append(value.value)
        return values[0], values[1]

    def values(self, address: int, size_bytes: int) -> bytes:
        self.call("cuCtxSynchronize")
        found = (ctypes.c_char * size_bytes)()
        self.call("cuMemcpyDtoH_v2", found, Address(address), ctypes.c_size_t(size_bytes))
        return bytes(found)

    def free_bytes(self) -> int:
        """Return the bytes that the device still has for everybody."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def stream(self) -> int:
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), WITHOUT_DEFAULT_STREAM)
        assert handle.value is not None
        return handle.value

    @contextmanager
    def busy(self, stream: int) -> Iterator[None]:
        """Keep a stream from finishing for the length of the block.

        The driver's thread waits in the C library: a function in Python would need its lock, which
        the test may hold in a call that waits for the driver.
        """
        library, gate = ctypes.CDLL(None), ctypes.create_string_buffer(SEMAPHORE_BYTES)
        library.sem_init(gate, 0, 0)
        wait = ctypes.cast(library.sem_wait, ctypes.c_void_p)
        self.call("cuLaunchHostFunc", ctypes.c_void_p(stream), wait, gate)
        try:
            yield
        finally:
            library.sem_post(gate)
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))


@functools.cache
def driver() -> Driver:
    return Driver()
