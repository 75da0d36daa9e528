import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import (
    BumpResource,
    CompositeResource,
    FileResource,
    FreeListResource,
    HostResource,
    SegmentResource,
    SlabResource,
)

PAGE = mmap.PAGESIZE

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture(params=["segment", "file"])
def shared(request, tmp_path):
    return SegmentResource() if request.param == "segment" else FileResource(str(tmp_path))


def passes_in_a_child(check):
    """Return whether `check` is true in a forked child of this process."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_block_can_be_mapped_by_its_descriptor(shared):
    block = shared.allocate_block(3 * PAGE + 5, 64)
    block.array()[:] = 7
    with mmap.mmap(shared.descriptor_of(block.address), 4 * PAGE) as mapped:
        assert mapped[: block.size_bytes] == b"\7" * block.size_bytes
        mapped[0] = 9
    assert block.array()[0] == 9


def test_a_descriptor_is_closed_with_its_block(shared):
    block = shared.allocate_block(PAGE)
    file, address = shared.descriptor_of(block.address), block.address
    del block
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)
    with pytest.raises(InputError, match="No block"):
        shared.descriptor_of(address)


def test_a_file_leaves_no_name(tmp_path):
    block = FileResource(str(tmp_path)).allocate_block(PAGE)
    assert not any(tmp_path.iterdir())
    assert not block.array().any()


def test_a_folder_that_is_not_there_is_refused():
    with pytest.raises(OutOfMemoryError, match=f"{PAGE} bytes"):
        FileResource("/there/is/no/such/folder").allocate(PAGE)


def test_a_child_sees_what_the_parent_writes_to_shared_blocks_only(shared):
    seen, unseen = shared.allocate_block(PAGE), HostResource().allocate_block(PAGE)

    def write():
        seen.array()[0] = unseen.array()[0] = 1
        return True

    assert passes_in_a_child(write)
    assert (seen.array()[0], unseen.array()[0]) == (1, 0)


def test_parent_and_child_serve_themselves_from_one_slab():
    slab = SlabResource(SegmentResource(), 1 << 16, 64)
    report = SegmentResource().allocate_block(8 * slab.block_count)
    found = np.asarray(report).view(np.uint64)
    slab.deallocate(slab.allocate(64), 64)

    def take():
        found[:100] = slab.allocate_many(100, 64)
        return True

    assert passes_in_a_child(take)
    rest = slab.block_count - 100
    while rest:
        try:
            mine = slab.allocate_many(rest, 64)
        except OutOfMemoryError:
            rest -= 1
        else:
            break
    assert rest >= slab.block_count - 100 - 64
    assert not set(mine.tolist()) & set(found[:100].tolist())


def test_parent_and_child_take_from_one_bump():
    bump = BumpResource(SegmentResource(), 1 << 16, 2)
    report = SegmentResource().allocate_block(8)
    found = np.asarray(report).view(np.uint64)

    def take():
        found[0] = bump.allocate(100)
        return True

    assert passes_in_a_child(take)
    assert bump.allocate(100) != found[0] != 0
    assert bump.statistics().current_count == 2


@pytest.mark.parametrize("make", [
    FreeListResource,
    lambda upstream: CompositeResource(upstream, 1 << 20, slabs=[]),
])  # fmt: skip
def test_a_free_list_in_shared_memory_stays_the_parents(make):
    free = make(SegmentResource())
    block = free.allocate(4096)
    free.deallocate(block, 4096)

    def is_refused():
        with pytest.raises(OutOfMemoryError, match="belongs to the parent process"):
            free.allocate(4096)
        return True

    assert passes_in_a_child(is_refused)
    assert free.allocate(4096) == block


def test_a_child_has_a_copy_of_private_resources():
    composite = CompositeResource(HostResource(), 4 << 20)
    blocks = [(composite.allocate(size), size) for size in (16, 100, 5000, 1 << 20)]

    def give_back():
        for block, size in blocks:
            composite.deallocate(block, size)
        return composite.statistics().current_count == 0

    assert passes_in_a_child(give_back)
    assert composite.statistics().current_count == len(blocks)
    assert give_back()


def test_some_files_are_left_to_the_process():
    program = """
import resource, threading
from tightship.errors import OutOfMemoryError
from tightship.resource import SegmentResource

resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
segments = SegmentResource()
blocks = []
try:
    while len(blocks) < 200:
        blocks.append(segments.allocate(4096))
except OutOfMemoryError as error:
    assert "of the 200" in str(error) and "RLIMIT_NOFILE" in str(error), error
files = [open("/proc/self/maps") for _ in range(45)]
segments.deallocate(blocks.pop(), 4096)
blocks.append(segments.allocate(4096))
print(130 < len(blocks) <= 150)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "True\n")
