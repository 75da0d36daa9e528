"""Cost of the CUDA driver's calls for virtual memory: medians in microseconds.

Called from Python: `cuDeviceGetCount`, which does next to nothing, says how much of that is ctypes.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns

from tightship.resource.virtual import CudaDevice

MIB = 1 << 20
CHUNKS = (2 * MIB, 20 * MIB)
TIMES = 50
TOGETHER = 10  # chunks whose access is set by one call

Word = ctypes.c_uint64


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("meta_data", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    ]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


HERE = _Location(1, 0)
PINNED = _Properties(1, 0, HERE, None, 0)
READ_AND_WRITE = _Access(HERE, 3)


class Driver:
    """The driver's functions, each call of which is timed.

    Raises:
        LibraryError: There is no driver, or no device.
    """

    def __init__(self) -> None:
        CudaDevice(0)
        path = os.environ.get("TIGHTSHIP_CUDA_DRIVER_LIBRARY") or "libcuda.so.1"
        self._library = ctypes.CDLL(path)
        self.microseconds: dict[str, list[float]] = {}

    def call(self, label: str, name: str, *arguments: object) -> None:
        """Calls `name`, and notes the time under `label`."""
        function: Callable[..., int] = self._library[name]
        start = perf_counter_ns()
        result = function(*arguments)
        self.microseconds.setdefault(label, []).append((perf_counter_ns() - start) / 1e3)
        if result != 0:
            raise SystemExit(f"{name} fails with error {result}: nothing is recorded.")

    @contextmanager
    def context(self) -> Iterator[None]:
        """The first device's own, for the calling thread."""
        context = ctypes.c_void_p()
        self.call("set up", "cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("set up", "cuCtxPushCurrent_v2", context)
        yield
        self.call("set up", "cuCtxPopCurrent_v2", ctypes.byref(context))
        self.call("set up", "cuDevicePrimaryCtxRelease_v2", 0)


def _chunks(driver: Driver, chunk_bytes: int, count: int) -> None:
    """`count` chunks, made, mapped in a row, let in together, and given back."""
    size = f"{chunk_bytes // MIB} MiB"
    start, length, chunk = Word(), Word(count * chunk_bytes), Word(chunk_bytes)
    driver.call(
        "cuMemAddressReserve", "cuMemAddressReserve", ctypes.byref(start), length, Word(), Word(),
        Word(),
    )  # fmt: skip
    handles = [Word() for _ in range(count)]
    places = [Word(start.value + index * chunk_bytes) for index in range(count)]
    for handle, place in zip(handles, places, strict=True):
        made = (ctypes.byref(handle), chunk, ctypes.byref(PINNED), Word())
        driver.call(f"cuMemCreate, {size}", "cuMemCreate", *made)
        driver.call(f"cuMemMap, {size}", "cuMemMap", place, chunk, Word(), handle, Word())
    access = (start, length, ctypes.byref(READ_AND_WRITE), Word(1))
    driver.call(f"cuMemSetAccess, {count} of {size}", "cuMemSetAccess", *access)
    for handle, place in zip(handles, places, strict=True):
        driver.call(f"cuMemUnmap, {size}", "cuMemUnmap", place, chunk)
        driver.call(f"cuMemRelease, {size}", "cuMemRelease", handle)
    driver.call("cuMemAddressFree", "cuMemAddressFree", start, length)


def _waits(driver: Driver) -> None:
    """An event on the default stream, which has nothing to do."""
    event, stream = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuEventCreate", "cuEventCreate", ctypes.byref(event), 2)
    driver.call("cuEventRecord", "cuEventRecord", event, stream)
    driver.call("cuStreamSynchronize, idle", "cuStreamSynchronize", stream)
    driver.call("cuEventQuery", "cuEventQuery", event)
    driver.call("cuEventDestroy", "cuEventDestroy_v2", event)
    driver.call("cuDeviceGetCount", "cuDeviceGetCount", ctypes.byref(ctypes.c_int()))


def call_figures() -> dict[str, float]:
    """Medians in microseconds, by call and size.

    Raises:
        LibraryError: There is no driver, or no device.
    """
    driver = Driver()
    with driver.context():
        for _ in range(TIMES):
            for chunk_bytes in CHUNKS:
                _chunks(driver, chunk_bytes, 1)
                _chunks(driver, chunk_bytes, TOGETHER)
            _waits(driver)
    del driver.microseconds["set up"]
    return {label: round(median(times), 2) for label, times in driver.microseconds.items()}
