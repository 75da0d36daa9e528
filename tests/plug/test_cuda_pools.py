"""The functions that PyTorch and CuPy call, over a driver without a device."""

import ctypes
import random
import sys
from types import SimpleNamespace

import pytest

from tests.at_once import at_once
from tests.native.fake_cuda import FakeCuda
from tightship import _core
from tightship.errors import InputError, LibraryError, OutOfMemoryError
from tightship.plug import cupy, pools, torch

PAGE = 1 << 16
BUSY, OTHER = 0x1000, 0x2000  # handles of streams
C = ctypes.CDLL(_core.__file__)
POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
C.tightship_torch_allocate.restype = C.tightship_cupy_allocate.restype = POINTER
C.tightship_torch_allocate.argtypes = [SIZE, INT, POINTER]
C.tightship_torch_deallocate.argtypes = [POINTER, SIZE, INT, POINTER]
C.tightship_torch_record_stream.argtypes = [POINTER, POINTER]
C.tightship_cupy_allocate.argtypes = [POINTER, ctypes.c_size_t, INT]
C.tightship_cupy_deallocate.argtypes = [POINTER, POINTER, INT]
allocate, deallocate = C.tightship_torch_allocate, C.tightship_torch_deallocate


def configure(fake):
    _core.configure_cuda_pools(page_bytes=PAGE, patience_s=0, driver_library=fake.path)


@pytest.fixture
def fake(tmp_path):
    """The process's pools, new, over a driver of their own."""
    made = FakeCuda(tmp_path)
    configure(made)
    return made


def test_a_block_can_be_written_and_comes_back_with_torchs_four_arguments(fake):
    block = allocate(3 * PAGE, 0, None)
    ctypes.memset(block, 1, 3 * PAGE)
    now = torch.memory_stats(0)
    assert now["allocated_bytes.all.current"] == now["reserved_bytes.all.peak"] == 3 * PAGE
    assert (now["allocation.all.current"], now["allocation.all.freed"]) == (1, 0)
    deallocate(block, 3 * PAGE, 0, None)
    now = torch.memory_stats(0)
    assert (now["allocated_bytes.all.current"], now["allocated_bytes.all.peak"]) == (0, 3 * PAGE)
    assert now["reserved_bytes.all.current"] == 3 * PAGE
    assert torch.empty_cache(0) == 3 * PAGE
    assert (fake.count("chunks"), torch.memory_stats(0)["reserved_bytes.all.current"]) == (0, 0)


@pytest.mark.usefixtures("fake")
def test_blocks_of_no_bytes_are_blocks_each_with_an_address():
    blocks = [allocate(0, 0, None) for _ in range(2)]
    assert blocks[0] != blocks[1]
    for block in blocks:
        deallocate(block, 0, 0, None)
    deallocate(None, 0, 0, None)
    assert torch.memory_stats()["allocation.all.current"] == 0


def test_each_device_has_a_pool(fake):
    blocks = [allocate(PAGE, device, None) for device in (0, 1)]
    assert fake.count("contexts") == 2
    for device, block in enumerate(blocks):
        assert torch.memory_stats(device)["allocation.all.current"] == 1
        deallocate(block, PAGE, device, None)


def test_a_stream_gets_its_block_back_at_once_and_others_when_it_is_done(fake):
    block = allocate(PAGE, 0, BUSY)
    fake.begin(BUSY)
    deallocate(block, PAGE, 0, BUSY)
    configure(fake)  # as they are: nothing happens
    assert allocate(PAGE, 0, BUSY) == block
    deallocate(block, PAGE, 0, BUSY)
    fake.finish(BUSY)
    assert allocate(PAGE, 0, OTHER) == block
    deallocate(block, PAGE, 0, OTHER)


def test_what_another_stream_was_recorded_for_is_not_reused_before_that_is_done(fake):
    block = allocate(PAGE, 0, OTHER)
    C.tightship_torch_record_stream(block, BUSY)
    fake.begin(BUSY)
    deallocate(block, PAGE, 0, OTHER)
    assert fake.count("stream_wait_event") == 1
    assert torch.empty_cache() == 0
    fake.finish(BUSY)
    assert torch.empty_cache() == PAGE


def test_a_stream_of_each_thread_is_waited_for(fake):
    block = allocate(PAGE, 0, 2)
    deallocate(block, PAGE, 0, 2)
    assert fake.count("stream_synchronize") == 1
    assert torch.empty_cache() == PAGE


def test_handles_of_streams_are_not_kept_for_good(fake):
    blocks = [allocate(PAGE, 0, BUSY), allocate(PAGE, 0, OTHER)]
    fake.begin(BUSY)
    deallocate(blocks[0], PAGE, 0, BUSY)
    for handle in range(0x10000, 0x20000, 0x40):
        deallocate(allocate(PAGE, 0, handle), PAGE, 0, handle)
    assert _core.cuda_pool_stream_count(0) <= 128
    deallocate(blocks[1], PAGE, 0, OTHER)
    assert torch.empty_cache() == 2 * PAGE
    assert allocate(PAGE, 0, BUSY) == blocks[0]
    deallocate(blocks[0], PAGE, 0, BUSY)
    fake.finish(BUSY)


def test_threads_on_streams_of_their_own_never_see_each_others_bytes(fake):
    faults = []

    def work(seed):
        choice, live = random.Random(seed), []
        for _ in range(150):
            if live and choice.random() < 0.5:
                block, size, mark = live.pop(choice.randrange(len(live)))
                if ctypes.string_at(block, size) != bytes([mark]) * size:
                    faults.append(seed)
                deallocate(block, size, 0, seed << 12)
            else:
                size, mark = choice.randrange(1, 3 * PAGE), choice.randrange(256)
                live.append((allocate(size, 0, seed << 12), size, mark))
                ctypes.memset(live[-1][0], mark, size)
        for block, size, _ in live:
            deallocate(block, size, 0, seed << 12)

    at_once(work, range(1, 5))
    assert faults == []
    assert torch.memory_stats()["allocated_bytes.all.current"] == 0
    torch.empty_cache()
    assert (fake.count("chunks"), fake.count("misuses")) == (0, 0)


def test_where_there_is_no_memory_torch_gets_an_exception_with_the_numbers(fake):
    fake.set("total_bytes", 2 * PAGE)
    assert fake.thrown(allocate, 3 * PAGE).startswith(f"Cannot allocate {3 * PAGE} bytes")
    assert "must be 0 or more" in fake.thrown(allocate, -1)
    assert fake.thrown(allocate, 1, device=9).startswith("Unknown CUDA device 9")
    block = allocate(2 * PAGE, 0, None)
    deallocate(block, 2 * PAGE, 0, None)


@pytest.mark.usefixtures("fake")
def test_what_is_no_block_is_said_and_changes_nothing(capfd):
    block = allocate(PAGE, 0, None)
    deallocate(block + 256, PAGE, 0, None)
    deallocate(block, PAGE + 1, 0, None)
    deallocate(block, PAGE, 9, None)
    assert capfd.readouterr().err.count("is not a block of a CUDA pool") == 3
    deallocate(block, PAGE, 0, None)
    assert capfd.readouterr().err == ""


def test_settings_stay_while_a_block_is_out(fake):
    block = allocate(PAGE, 0, None)
    with pytest.raises(InputError, match="device 0 has 1 blocks in use"):
        pools.configure(page_bytes=2 * PAGE, driver_library=fake.path)
    deallocate(block, PAGE, 0, None)
    pools.configure(page_bytes=2 * PAGE, driver_library=fake.path)
    assert fake.count("contexts") == 0


def test_cupys_functions_need_no_size_to_give_back(fake):
    block = C.tightship_cupy_allocate(None, 1000, 0)
    ctypes.memset(block, 1, 1000)
    fake.begin(0)
    C.tightship_cupy_deallocate(None, block, 0)
    other = C.tightship_cupy_allocate(None, 1000, 0)
    assert other != block
    C.tightship_cupy_deallocate(None, other, 0)
    fake.finish(0)
    own = C.tightship_cupy_allocate(BUSY, 1000, 0)
    fake.begin(BUSY)
    C.tightship_cupy_deallocate(BUSY, own, 0)
    assert C.tightship_cupy_allocate(BUSY, 1024, 0) == own
    C.tightship_cupy_deallocate(BUSY, own, 0)
    fake.finish(BUSY)
    assert torch.memory_stats()["allocation.all.current"] == 0


def test_cupys_function_is_null_where_there_is_no_memory(fake, capfd):
    fake.set("total_bytes", PAGE)
    assert C.tightship_cupy_allocate(None, 2 * PAGE, 0) is None
    assert C.tightship_cupy_allocate(None, (1 << 64) - 1, 0) is None
    assert C.tightship_cupy_allocate(None, 1, 9) is None
    assert "Unknown CUDA device 9" in capfd.readouterr().err


class StandIn:
    """A class of another library, which keeps what it is made with."""

    def __init__(self, *given):
        self.given, self.record_stream = given, None

    def allocator(self):
        return self

    def set_record_stream_fn(self, address):
        self.record_stream = address

    def malloc(self, size_bytes):
        kind = ctypes.CFUNCTYPE(POINTER, POINTER, ctypes.c_size_t, INT)
        return SimpleNamespace(ptr=kind(self.given[1])(self.given[0], size_bytes, 0) or 0)


def test_torchs_allocator_is_of_functions_that_its_library_has(fake, monkeypatch):
    cuda = SimpleNamespace(memory=SimpleNamespace(CUDAPluggableAllocator=StandIn), MemPool=StandIn)
    stand_in = SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="12.8"))
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    made = torch.allocator(page_bytes=PAGE, driver_library=fake.path)
    library = ctypes.CDLL(made.given[0])
    assert all(hasattr(library, name) for name in made.given[1:])
    recorder = ctypes.cast(library.tightship_torch_record_stream, POINTER).value
    assert made.record_stream == recorder
    pool = torch.memory_pool(page_bytes=PAGE, driver_library=fake.path)
    assert pool.given[0].given == made.given


def test_without_torch_or_without_its_cuda_both_are_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LibraryError, match="`torch` is not installed"):
        torch.allocator()
    absent = SimpleNamespace(version=SimpleNamespace(cuda=None), __version__="2.9")
    monkeypatch.setitem(sys.modules, "torch", absent)
    with pytest.raises(LibraryError, match=r"torch 2.9 was built without CUDA"):
        torch.allocator()


def test_cupys_allocator_refuses_in_words(fake, monkeypatch):
    fake.set("total_bytes", 4 * PAGE)
    memory = SimpleNamespace(CFunctionAllocator=StandIn)
    cuda = SimpleNamespace(memory=memory)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    make = cupy.allocator(page_bytes=PAGE, driver_library=fake.path)
    block = make(PAGE).ptr
    C.tightship_cupy_deallocate(None, block, 0)
    with pytest.raises(OutOfMemoryError, match=f"{5 * PAGE} bytes"):
        make(5 * PAGE)


def test_without_cupy_that_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy.cuda", None)
    with pytest.raises(LibraryError, match="`cupy` is not installed"):
        cupy.allocator()
