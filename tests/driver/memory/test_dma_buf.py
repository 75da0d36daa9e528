"""Memory that a device uses too: which calls the kernel gets, and that data are touched between.

A device is played by a kernel that keeps what the device sees apart from what the processor sees,
and moves it only with the calls. On a machine with a device that makes dma-bufs one is used.
"""

import errno
import mmap
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.small_models import dense
from tightship._core import StopFlag
from tightship.driver.memory import dma_buf
from tightship.driver.memory.descriptor import describe
from tightship.driver.memory.dma_buf import (
    KERNEL,
    READ,
    WRITE,
    Kernel,
    allocate,
    is_dma_buf,
    synced,
)
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.trusted import Trusted
from tightship.driver.models.loaded import loaded
from tightship.driver.models.running import Runs
from tightship.driver.protocol import messages as m
from tightship.driver.service.effects import Run, RunArgument
from tightship.driver.service.pools import check_pool
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import DeviceMemory, Image, Pool
from tightship.driver.types.request import Extent
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError
from tightship.loading import load

PAGE = mmap.PAGESIZE
END, SYNC = 4, 0x40086200
GF = ErrorStatus.GENERAL_FAILURE


class Playing(Kernel):
    """Device that exchanges the processor's bytes of a mapping with its own by calls.

    Attributes:
        device: The bytes that the device has.
        calls: Flags of each call.
        errors: What the next calls fail with.
    """

    def __init__(self, size_bytes=2 * PAGE, exporter="udmabuf"):
        self.device, self.calls, self.errors = bytearray(size_bytes), [], []
        self.exporter, self.cached = exporter, None

    def information(self, _):
        return f"pos:\t0\nsize:\t8192\ncount:\t2\nexp_name:\t{self.exporter}\n"

    def map(self, file, size_bytes, protection, offset):
        self.cached, self.offset = super().map(file, size_bytes, protection, offset), offset
        return self.cached

    def ioctl(self, _, request, argument):
        assert request == SYNC
        if self.errors:
            raise OSError(self.errors.pop(0), "busy")
        (flags,) = struct.unpack("<Q", argument)
        self.calls.append(flags)
        cached = np.frombuffer(self.cached, np.uint8)
        seen = np.frombuffer(self.device, np.uint8)[self.offset :][: cached.size]
        if flags & END and flags & WRITE:
            seen[...] = cached
        elif not flags & END and flags & READ:
            cached[...] = seen
        return 0


@pytest.fixture
def file(tmp_path):
    """Something of two pages to map."""
    path = tmp_path / "memory"
    path.write_bytes(bytes(2 * PAGE))
    with path.open("r+b") as opened:
        yield os.dup(opened.fileno())


def pool_of(file, image=None, size_bytes=2 * PAGE, number=1):
    extent = Extent((1, file), 0, size_bytes, image is not None, size_bytes)
    kind = "hardware_buffer_blob" if image is None else "hardware_buffer"
    return Pool(number, kind, extent, 3, DeviceMemory.DMA_BUF, file, is_decodable=True, image=image)


def bytes_of(*numbers):
    return np.array(numbers, np.uint8)


def test_what_a_device_has_written_is_read_between_two_calls(file):
    kernel = Playing()
    kernel.device[5:8] = b"abc"
    mappings, pool = Mappings(FileProber(), kernel), pool_of(file)
    assert mappings.read(pool, 5, 3).tobytes() == b"abc"
    kernel.device[5:8] = b"xyz"
    assert mappings.read(pool, 5, 3).tobytes() == b"xyz"
    assert kernel.calls == [READ, READ | END] * 2


def test_what_is_written_between_two_calls_is_there_for_a_device(file):
    kernel = Playing()
    kernel.device[:] = b"\7" * len(kernel.device)
    mappings = Mappings(FileProber(), kernel)
    mappings.write(pool_of(file), 5, bytes_of(1, 2, 3))
    assert kernel.device[4:9] == b"\7\1\2\3\7"
    assert kernel.calls == [READ | WRITE, READ | WRITE | END]


def test_rows_of_an_image_are_written_between_two_calls_and_the_rest_is_left(file):
    kernel = Playing()
    kernel.device[:] = b"\7" * len(kernel.device)
    pool, mappings = pool_of(file, Image(1, 2, 1, 8)), Mappings(FileProber(), kernel)
    mappings.store(pool, bytes_of(*range(8)))
    assert kernel.device[:17] == b"\0\1\2\3\7\7\7\7\4\5\6\7\7\7\7\7\7"
    assert kernel.calls == [READ | WRITE, READ | WRITE | END]
    assert mappings.whole(pool).tolist() == list(range(8))


def test_a_model_runs_on_copies_that_were_made_between_calls(file):
    """Never where they are: a device might write there meanwhile."""
    kernel, (source, weights) = Playing(), dense(batch=4)
    x = np.random.default_rng(0).standard_normal((4, 32), np.float32)
    kernel.device[: x.nbytes] = x.tobytes()
    pool = pool_of(file)
    ends = [DataLocation(0, 0, x.nbytes), DataLocation(0, PAGE, 128)]
    asked = [
        RunArgument(shape, place, pool)
        for shape, place in zip([(4, 32), (4, 8)], ends, strict=True)
    ]
    with load(source) as model:
        runs = Runs({1: loaded(model)}, Mappings(FileProber(), kernel), None)
        for _ in range(5):
            answer = runs.run(Run(1, 1, (asked[0],), (asked[1],), -1, -1), StopFlag())
            assert answer.status is ErrorStatus.NONE
            assert runs.often(Run(1, 1, (asked[0],), (asked[1],), -1, -1)) is None
    result = np.frombuffer(kernel.device, np.float32, 32, PAGE).reshape(4, 8)
    wanted = np.maximum(x @ weights["w"] + weights["b"], 0) @ weights["w2"]
    np.testing.assert_allclose(result, wanted, 1e-4, 1e-4)
    assert kernel.calls == [READ, READ | END, READ | WRITE, READ | WRITE | END] * 5


@pytest.mark.parametrize("error", [errno.EINTR, errno.EAGAIN])
def test_calls_that_are_interrupted_are_made_again(file, error):
    kernel = Playing()
    kernel.errors = [error] * 7
    kernel.device[0] = 9
    assert Mappings(FileProber(), kernel).read(pool_of(file), 0, 1).tolist() == [9]
    assert kernel.calls == [READ, READ | END]


def fails(call, *arguments):
    with pytest.raises(DriverError) as caught:
        call(*arguments)
    return caught.value.status == GF


def test_what_the_kernel_refuses_fails(file):
    kernel, pool = Playing(), pool_of(file)
    mappings = Mappings(FileProber(), kernel)
    for errors in ([errno.EIO], [errno.EAGAIN] * dma_buf.RETRIES_MAX):
        kernel.errors = list(errors)
        assert fails(mappings.read, pool, 0, 1)
        kernel.errors = list(errors)
        assert fails(mappings.write, pool, 0, bytes_of(1))
        assert not kernel.calls


def test_an_access_ends_though_what_was_done_in_it_failed(file):
    kernel = Playing()
    kernel.map(file, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, 0)
    with pytest.raises(ZeroDivisionError), synced(file, READ | WRITE, kernel):
        raise ZeroDivisionError
    assert kernel.calls == [READ | WRITE, READ | WRITE | END]


def test_a_dma_buf_is_known_by_who_exports_it(file):
    found = describe(file, Trusted(), Playing())
    assert found.is_dma_buf
    assert found.is_regular
    assert found.is_shrink_sealed
    assert found.size_bytes == 2 * PAGE
    for exporter in ("a_gpu", "a_gpu\nname:\tmine\nexp_name:\tudmabuf"):
        assert not describe(file, Trusted(), Playing(exporter=exporter)).is_dma_buf
    assert not describe(file, Trusted()).is_dma_buf


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_pool_of_a_dma_buf_is_never_used_where_it_is_whatever_is_asked_for(mode):
    call = m.RegisterPool(
        "hardware_buffer_blob", PAGE, 3, 0, mode=mode, image=Image(PAGE, 1, 1, PAGE)
    )
    found = Attachment(9, PAGE, is_shrink_sealed=True, is_dma_buf=True)
    assert check_pool(call, found, 1, ()).mode is DeviceMemory.DMA_BUF


class Making(Kernel):
    """Devices that make dma-bufs, by path."""

    def __init__(self, *paths):
        self.paths, self.asked = paths, []

    def has(self, path):
        return path in self.paths

    def open(self, _):
        return os.open(os.devnull, os.O_RDWR)

    def ioctl(self, _, request, argument):
        self.asked.append((request, bytes(argument)))
        if request == 0x40187542:
            memory, flags, start, size_bytes = struct.unpack("<IIQQ", argument)
            assert describe(memory, Trusted()).is_shrink_sealed
            assert not describe(memory, Trusted()).is_write_sealed
            assert (os.fstat(memory).st_size, flags, start) == (size_bytes, 1, 0)
            return 77
        argument[8:12] = struct.pack("<I", 78)
        return 0


def test_a_dma_buf_is_made_of_memory_or_of_a_heap_or_not_at_all():
    both, heap, none = (
        Making("/dev/udmabuf", "/dev/dma_heap/system"),
        Making("/dev/dma_heap/system"),
        Making(),
    )
    assert (allocate(PAGE, both), allocate(PAGE, heap), allocate(PAGE, none)) == (77, 78, None)
    flags = os.O_RDWR | os.O_CLOEXEC
    assert heap.asked == [(0xC0184800, struct.pack("<QIIQ", PAGE, 0, flags, 0))]
    assert [dma_buf.has_allocator(each) for each in (both, heap, none)] == [True, True, False]


def test_a_blob_is_used_where_no_device_makes_a_dma_buf_too(tmp_path):
    """The driver can report a dma-buf only on machines with a device that makes them."""
    source, weights = dense(batch=4)
    x = np.random.default_rng(0).standard_normal((4, 32), np.float32)
    with driver(tmp_path) as running, running.client() as client:
        before = len(os.listdir("/proc/self/fd"))
        with client.prepare(source) as model, client.blob(5000) as blob:
            assert blob.is_dma_buf == dma_buf.has_allocator(KERNEL)
            assert blob.is_dma_buf == ("dma_buf" in client.capabilities().features)
            given, result = blob.place((4, 32), "f4"), blob.place((4, 8), "f4")
            with blob.access(to_write=True):
                given.array[...] = x
            model.execute([given], [result])
            with blob.access():
                wanted = np.maximum(x @ weights["w"] + weights["b"], 0) @ weights["w2"]
                np.testing.assert_allclose(result.array, wanted, 1e-4, 1e-4)
            (pool,) = [
                each
                for each in client.inspect().clients[0].pools
                if each.kind == "hardware_buffer_blob"
            ]
            assert pool.mode == ("dma_buf" if blob.is_dma_buf else "sealed")
        del given, result, model
        blob.close()
        assert len(os.listdir("/proc/self/fd")) <= before


def test_a_blob_may_be_of_memory_that_is_there(tmp_path):
    memory = os.memfd_create("memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, PAGE)
    with driver(tmp_path) as running, running.client() as client:
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(DriverError, match="F_SEAL_SHRINK"):
            client.blob(PAGE, memory)
        for allocate_memory in (client.blob, client.segment):
            with pytest.raises(InputError, match="`size_bytes`: `0` is less than a byte"):
                allocate_memory(0)
        assert len(os.listdir("/proc/self/fd")) <= before
    os.close(memory)


@pytest.mark.skipif(not Path("/dev/udmabuf").exists(), reason="no device makes dma-bufs here")
def test_a_real_dma_buf_keeps_its_size_and_says_what_it_is():
    file = allocate(2 * PAGE, KERNEL)
    assert is_dma_buf(file, KERNEL)
    found = describe(file, Trusted())
    assert (found.is_dma_buf, found.size_bytes) == (True, 2 * PAGE)
    mappings, pool = Mappings(FileProber()), pool_of(file)
    mappings.write(pool, 5, bytes_of(1, 2, 3))
    assert mappings.read(pool, 4, 5).tolist() == [0, 1, 2, 3, 0]
    mappings.drop(pool)
