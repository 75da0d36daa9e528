"""Every paged device that the tests run over: a new one joins by a line."""

from collections.abc import Callable

from tests.native.fake_cuda import library
from tests.resource.virtual.file_pair import file_pair
from tightship.resource.virtual import (
    CudaDevice,
    FailingDevice,
    HostDevice,
    PagedDevice,
    SharedDevice,
)

DEVICES: dict[str, Callable[[], PagedDevice]] = {
    "host": HostDevice,
    "shared": SharedDevice,
    "python": file_pair,
    "cuda": lambda: CudaDevice(0, library()),
    "failing_never": lambda: FailingDevice(HostDevice(), 0, 0),
}
