"""Faults of the published allocator's CUDA classes, over a driver without a device."""

import ctypes
from contextlib import suppress

import pytest

from tests.at_once import at_once
from tests.native.fake_cuda import FakeCuda
from tightship.errors import InputError, LibraryError, OutOfMemoryError
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    CudaDevice,
    CudaStream,
    FailingDevice,
    HostStream,
    PythonStream,
    StealingVirtualResource,
)

CHUNK = 1 << 16
BUSY, OTHER = 0x1000, 0x2000  # handles of streams
REFUSED = ("create", "map", "set_access", "reserve", "unmap", "push")
"""Calls that a driver may refuse; those that give memory back are not among them."""


def seed(device):
    return ChunkedVirtualResource(device, CHUNK)


def stealing(device):
    return StealingVirtualResource(device, page_bytes=CHUNK, patience_s=0)


@pytest.fixture
def fake(tmp_path):
    return FakeCuda(tmp_path)


@pytest.fixture
def device(fake):
    return CudaDevice(0, fake.path)


@pytest.fixture(params=[seed, stealing])
def make(request):
    return request.param


def worked(resource, written=True):
    """Memory that goes back and forth, so that chunks are made, moved and given back."""
    blocks = [resource.allocate(count * CHUNK) for count in (2, 3, 2, 1)]
    for block, count in zip(blocks[::2], (2, 2), strict=True):
        resource.deallocate(block, count * CHUNK)
    large = resource.allocate(4 * CHUNK)
    if written:
        ctypes.memset(large, 1, 4 * CHUNK)
    resource.deallocate(large, 4 * CHUNK)
    resource.trim()


def given_back_on(resource, stream, count=1):
    address = resource.allocate_on(count * CHUNK, stream)
    resource.deallocate_on(address, count * CHUNK, stream)
    return address


def test_nothing_is_left_and_no_rule_of_the_driver_was_broken(fake, make):
    resource = make(CudaDevice(0, fake.path))
    worked(resource)
    assert fake.count("contexts") == 1
    del resource
    assert fake.is_empty()


@pytest.mark.parametrize("name", REFUSED)
def test_d1_d2_d3_d4_every_call_refused_once_leaks_nothing(fake, make, name):
    step, calls = 0, 1
    while step < calls:
        resource = make(CudaDevice(0, fake.path))
        before = fake.count(name)
        fake.refuse(name, step)
        with suppress(OutOfMemoryError):
            worked(resource)
        calls, step = fake.count(name) - before, step + 1
        worked(resource)
        resource.trim()
        now = resource.virtual_statistics()
        assert now.physical_bytes == fake.count("chunks") * CHUNK
        del resource
        assert fake.is_empty()


def test_d1_what_another_request_has_cached_goes_back_before_one_is_refused(fake, make):
    fake.set("total_bytes", 4 * CHUNK)
    resource = make(CudaDevice(0, fake.path))
    for count in (1, 3, 4, 2, 4):
        resource.deallocate(resource.allocate(count * CHUNK), count * CHUNK)
    with pytest.raises(OutOfMemoryError, match="device"):
        resource.allocate(5 * CHUNK)
    resource.allocate(4 * CHUNK)


def test_d3_a_chunk_that_was_not_made_is_not_given_back(fake, make):
    resource = make(CudaDevice(0, fake.path))
    fake.refuse("create", 1, 1 << 30)
    with pytest.raises(OutOfMemoryError):
        resource.allocate(3 * CHUNK)
    fake.refuse("create", 0, 0)
    assert fake.count("misuses") == 0


@pytest.mark.parametrize(("name", "step"), [("map", 0), ("map", 2), ("set_access", 0)])
def test_d4_chunks_are_mapped_together_or_not_at_all(fake, make, name, step):
    resource = make(CudaDevice(0, fake.path))
    fake.refuse(name, step, 1 << 30)
    with pytest.raises(OutOfMemoryError):
        resource.allocate(3 * CHUNK)
    assert fake.count("mapped") == 0
    fake.refuse(name, 0, 0)
    del resource
    assert fake.is_empty()


def test_d4_what_could_not_be_unmapped_is_unmapped_later(fake):
    resource = stealing(CudaDevice(0, fake.path))
    fake.refuse("map", 2, 1 << 30)
    fake.refuse("unmap", 0, 1 << 30)
    with pytest.raises(OutOfMemoryError):
        resource.allocate(3 * CHUNK)
    assert fake.count("mapped") > 0
    fake.refuse("map", 0, 0)
    fake.refuse("unmap", 0, 0)
    worked(resource)
    del resource
    assert fake.is_empty()


def test_a_block_of_which_a_part_was_unmapped_is_not_handed_out_as_a_whole(fake):
    resource = seed(CudaDevice(0, fake.path))
    resource.deallocate(resource.allocate(3 * CHUNK), 3 * CHUNK)
    fake.refuse("unmap", 1, 2)
    resource.allocate(2 * CHUNK)
    address = resource.allocate(3 * CHUNK)
    assert resource.virtual_statistics().allocated_bytes == 5 * CHUNK
    ctypes.memset(address, 1, 3 * CHUNK)


@pytest.mark.parametrize("name", ["release", "address_free", "primary_release", "event_destroy"])
def test_d4_what_the_driver_does_not_take_back_ends_no_process(fake, make, name):
    resource = make(CudaDevice(0, fake.path))
    fake.refuse(name, 0, 1 << 30)
    worked(resource)
    del resource
    assert fake.count("misuses") == 0


def test_access_is_set_once_for_all_that_is_mapped_together(fake, make, device):
    make(device).allocate(8 * CHUNK)
    assert (fake.count("map"), fake.count("set_access")) == (8, 1)


def test_d9_a_busy_device_holds_up_no_other(fake, make):
    busy, idle = CudaDevice(0, fake.path), CudaDevice(1, fake.path)
    pools = make(busy), make(idle)
    fake.begin(BUSY)
    given_back_on(pools[0], CudaStream(busy, BUSY), 3)
    given_back_on(pools[1], CudaStream(idle, OTHER), 3)
    assert (pools[0].trim(), pools[1].trim()) == (0, 3 * CHUNK)
    fake.finish(BUSY)


def test_d11_sizes_that_the_device_cannot_map_are_refused_where_they_are_set(fake):
    fake.set("granularity", 2 << 20)
    fake.set("total_bytes", 64 << 20)
    device = CudaDevice(0, fake.path)
    resource = ChunkedVirtualResource(device)
    for chunk in (1 << 20, 3 << 20, 66 << 20):
        with pytest.raises(InputError, match=f"{2 << 20} bytes.*at most {64 << 20}"):
            resource.set_chunk_size(chunk)
    for page in (1 << 20, 128 << 20):
        with pytest.raises(InputError, match="page_bytes"):
            StealingVirtualResource(device, page_bytes=page)
    assert resource.chunk_bytes == 20 << 20


def test_d12_addresses_that_cannot_grow_in_place_are_not_kept(fake, device):
    fake.set("grows_elsewhere", 1)
    resource = seed(device)
    for count in range(1, 12):
        resource.deallocate(resource.allocate(count * CHUNK), count * CHUNK)
    resource.trim()
    assert fake.count("reserved") == 0


def test_addresses_that_grow_in_place_go_back_part_by_part(fake):
    resource = seed(CudaDevice(0, fake.path))
    for count in range(1, 12):
        resource.deallocate(resource.allocate(count * CHUNK), count * CHUNK)
    del resource
    assert fake.is_empty()


def test_d13_a_block_serves_its_stream_at_once_and_others_behind_its_event(fake, device, make):
    resource = make(device)
    stream, other = CudaStream(device, BUSY), CudaStream(device, OTHER)
    fake.begin(BUSY)
    address = given_back_on(resource, stream)
    assert resource.allocate_on(CHUNK, other) != address
    assert resource.allocate(CHUNK) != address
    assert resource.allocate_on(CHUNK, stream) == address
    resource.deallocate_on(address, CHUNK, stream)
    fake.finish(BUSY)
    assert address in {resource.allocate(CHUNK) for _ in range(3)}


def test_d13_an_event_that_cannot_be_made_is_waited_for(fake, device, make):
    for name in ("event_create", "event_record"):
        resource, stream = make(device), CudaStream(device, BUSY)
        fake.refuse(name, 0, 1 << 30)
        before = fake.count("stream_synchronize")
        address = given_back_on(resource, stream)
        assert resource.trim() == CHUNK or resource.allocate(CHUNK) == address
        assert fake.count("stream_synchronize") > before
        fake.refuse(name, 0, 0)


def test_d13_an_event_that_is_never_reached_blocks_no_thread(fake, device, make):
    resource, stream = make(device), CudaStream(device, BUSY)
    fake.begin(BUSY)
    given_back_on(resource, stream)
    assert resource.trim() == 0
    resource.deallocate(resource.allocate(CHUNK), CHUNK)
    assert resource.trim() == CHUNK
    fake.finish(BUSY)


def test_a_stream_that_is_not_the_devices_is_refused_and_changes_nothing(fake, device, make):
    resource = make(device)
    address = resource.allocate(CHUNK)
    theirs = CudaStream(CudaDevice(1, fake.path), BUSY)
    for stream in (PythonStream(lambda: None), HostStream(), theirs):
        with pytest.raises(InputError, match="`CudaStream` of the device"):
            resource.allocate_on(CHUNK, stream)
        with pytest.raises(InputError, match="`CudaStream` of the device"):
            resource.deallocate_on(address, CHUNK, stream)
    with pytest.raises(InputError, match="`CudaStream`"):
        make(FailingDevice(device, 0, 0)).allocate_on(CHUNK, PythonStream(lambda: None))
    assert resource.statistics().current_bytes == CHUNK
    same = CudaStream(CudaDevice(0, fake.path), BUSY)
    resource.deallocate_on(address, CHUNK, same)
    assert resource.allocate_on(CHUNK, CudaStream(device, OTHER)) == address


def test_a_stream_of_each_thread_is_refused(device):
    with pytest.raises(InputError, match="handle"):
        CudaStream(device, 2)


def test_d17_every_thread_has_the_context_while_it_needs_it_and_no_longer(fake, make):
    resource, depths = make(CudaDevice(0, fake.path)), []

    def work():
        worked(resource)
        depths.append(fake.count("depth"))

    at_once(lambda _: work(), range(4))
    assert depths == [0, 0, 0, 0]
    assert (fake.count("contexts"), fake.count("misuses")) == (1, 0)


def test_d17_a_device_that_cannot_be_made_holds_no_context(fake):
    fake.refuse("push")
    CudaDevice(0, fake.path)
    assert fake.count("contexts") == 0


def test_a_driver_that_is_not_there_is_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CUDA_DRIVER_LIBRARY", str(tmp_path / "libnone.so"))
    with pytest.raises(LibraryError, match=r"libnone.so.*TIGHTSHIP_CUDA_DRIVER_LIBRARY"):
        CudaDevice()


def test_a_library_that_is_no_driver_is_named_with_what_it_lacks(monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CUDA_DRIVER_LIBRARY", "libc.so.6")
    with pytest.raises(LibraryError, match=r"`libc.so.6` has no function `cuInit`.*CUDA 11.2"):
        CudaDevice()


def test_a_device_that_is_not_there_or_cannot_map_is_refused_by_number(fake):
    with pytest.raises(LibraryError, match=r"Unknown CUDA device 7: the driver has 2.*`ordinal`"):
        CudaDevice(7, fake.path)
    with pytest.raises(InputError, match="ordinal"):
        CudaDevice(-1, fake.path)
    fake.set("can_map", 0)
    with pytest.raises(LibraryError, match="device 0 cannot map"):
        CudaDevice(0, fake.path)


def test_a_driver_that_does_not_start_is_quoted_and_asked_again(fake):
    fake.refuse("init")
    with pytest.raises(LibraryError, match=r"be initialised: it was told to \(error 999\)"):
        CudaDevice(0, fake.path)
    assert CudaDevice(0, fake.path).total_bytes == 1 << 40
