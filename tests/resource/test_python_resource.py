"""Resources that are classes of Python."""

import gc
import weakref

import numpy as np
import pytest

from tightship.errors import OutOfMemoryError
from tightship.plug.numpy import use
from tightship.resource import HostResource, LimitingResource, PythonResource, StatisticsResource

MIB = 1 << 20


class Doubling(PythonResource):
    """A resource that counts requests, and takes each twice as large from another."""

    def __init__(self, upstream):
        super().__init__()
        self.upstream = upstream
        self.count = 0

    def do_allocate(self, size_bytes, alignment):
        self.count += 1
        if size_bytes > MIB:
            raise ValueError("too large for this one")
        return self.upstream.allocate(2 * size_bytes, alignment)

    def do_deallocate(self, address, size_bytes, alignment):
        self.upstream.deallocate(address, 2 * size_bytes, alignment)


def test_a_class_of_python_is_a_resource() -> None:
    host = StatisticsResource(HostResource())
    mine = Doubling(host)
    with use(LimitingResource(mine, "2MiB")):
        array = np.ones(1000)
    assert mine.count >= 1  # with what NumPy makes beside the array
    assert host.counters().current_bytes == 2 * (8000 + 64)
    del array
    assert host.counters().current_bytes == 0
    with pytest.raises(OutOfMemoryError, match="too large for this one"):
        mine.allocate("1.5MiB")


def test_a_class_without_the_methods_refuses() -> None:
    class Bare(PythonResource):
        pass

    with pytest.raises(OutOfMemoryError, match="NotImplementedError"):
        Bare().allocate(10)


def test_a_resource_of_python_is_collected() -> None:
    seen = [weakref.ref(Doubling(HostResource())) for _ in range(20)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []
