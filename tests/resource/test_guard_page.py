"""Accesses beside a block stop the program: each in a child of one process, by its signal."""

import ctypes
import json
import signal
import subprocess
import sys

import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import (
    BumpResource,
    CompositeResource,
    FreeListResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    RegionResource,
    SlabResource,
    TrackingResource,
)

PAGE = 4096

PROGRAM = """
import ctypes, json, os, resource, sys
from tightship.resource import *

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
STACKS = {
    "host": lambda: GuardPageResource(HostResource()),
    "free_list": lambda: TrackingResource(GuardPageResource(FreeListResource(HostResource()))),
    "composite": lambda: GuardPageResource(CompositeResource(HostResource(), 1 << 24)),
}

def stop(address, size):  # where the page without access begins
    return -(-(address + size) // 4096) * 4096

def freed(memory, address, size, alignment):
    memory.deallocate(address, size, alignment)

def write(address): ctypes.memset(address, 1, 1)
def read(address): ctypes.string_at(address, 1)

MISUSES = {  # of memory, and a block's address, size and alignment
    "within": lambda _, at, size, __: (write(at), write(at + size - 1)),
    "write past it": lambda _, at, size, __: write(stop(at, size)),
    "read past it": lambda _, at, size, __: read(stop(at, size)),
    "write before it": lambda _, at, *__: write((at - 32) // 4096 * 4096 - 1),
    "write after its end": lambda memory, *of: (freed(memory, *of), write(of[0])),
    "read after its end": lambda memory, *of: (freed(memory, *of), read(of[0])),
    "last byte after it": lambda memory, *of: (freed(memory, *of), read(of[0] + of[1] - 1)),
}

def signal_of(make, misuse, size, alignment):
    child = os.fork()
    if child == 0:
        memory = make()
        misuse(memory, memory.allocate(size, alignment), size, alignment)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

print(json.dumps([
    [stack, name, size, alignment, signal_of(make, misuse, size, alignment)]
    for stack, make in STACKS.items() for name, misuse in MISUSES.items()
    for size, alignment in json.loads(sys.argv[1])
]))
"""

BLOCKS = ((1, 1), (7, 1), (64, 64), (1000, 8), (4096, 16), (70_000, 4096), (100, 8192))


def test_every_access_beside_a_block_or_after_its_end_is_stopped_by_a_signal():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(BLOCKS)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not done.stderr
    cases = json.loads(done.stdout)
    assert len(cases) == 3 * 7 * len(BLOCKS)
    for *case, stopped in cases:
        expected = 0 if case[1] == "within" else signal.SIGSEGV
        assert (case, stopped) == (case, expected)


@pytest.fixture
def memory():
    return GuardPageResource(HostResource(), quarantine_bytes=PAGE)


@pytest.mark.parametrize(("size", "alignment"), [*BLOCKS, (5, 16), (4095, 64)])
def test_a_block_ends_as_near_to_the_page_as_its_alignment_admits(memory, size, alignment):
    address = memory.allocate(size, alignment)
    assert address % alignment == 0
    rest = -(address + size) % PAGE
    assert rest < alignment
    ctypes.memset(address, 7, size)
    memory.deallocate(address, size, alignment)


@pytest.mark.parametrize("offset", [-32, -1, 1000, 1007])
def test_what_alignment_leaves_beside_a_block_is_looked_at_when_it_comes_back(memory, offset):
    address = memory.allocate(1000, 16)
    kept = ctypes.string_at(address + offset, 1)
    ctypes.memset(address + offset, kept[0] ^ 1, 1)
    with pytest.raises(InputError, match="bytes beside it were written to; it stays live"):
        memory.deallocate(address, 1000)
    assert memory.owns(address)
    ctypes.memmove(address + offset, kept, 1)
    memory.deallocate(address, 1000)


def test_a_block_is_given_back_once_by_its_size_and_alignment(memory):
    address = memory.allocate(1000, 16)
    for wrong in ((address, 999, 16), (address, 1000, 8), (address + 1, 1000, 16)):
        with pytest.raises(InputError):
            memory.deallocate(*wrong)
    memory.deallocate(address, 1000, 16)
    with pytest.raises(InputError, match="already free"):
        memory.deallocate(address, 1000, 16)


def test_blocks_wait_until_others_push_them_out_and_serve_again():
    upstream = TrackingResource(HostResource())
    memory = GuardPageResource(upstream, quarantine_bytes=2000)
    for _ in range(5):
        memory.deallocate(memory.allocate(1000), 1000)
    assert memory.quarantined_bytes == 2000
    assert len(upstream.live()) == 2
    memory.trim()
    assert (memory.quarantined_bytes, upstream.live()) == (0, [])


def test_what_waits_is_given_up_where_memory_runs_short():
    memory = GuardPageResource(LimitingResource(HostResource(), 4 * PAGE), quarantine_bytes=1 << 20)
    for _ in range(3):
        address = memory.allocate(1000)
        memory.deallocate(address, 1000)
    memory.allocate(1000)
    with pytest.raises(OutOfMemoryError):
        memory.allocate(1000)


def test_memory_of_others_can_be_touched_again_afterwards():
    buffer = bytearray(8 * PAGE)
    memory = GuardPageResource(FreeListResource(RegionResource(buffer)), quarantine_bytes=PAGE)
    memory.deallocate(memory.allocate(100), 100)
    memory.allocate(100)
    del memory
    buffer[:] = b"x" * len(buffer)


def test_sizes_that_no_address_space_has_are_refused(memory):
    for size, alignment in ((1 << 56, 16), (1, 1 << 56)):
        with pytest.raises(OutOfMemoryError):
            memory.allocate(size, alignment)


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        (lambda: BumpResource(HostResource(), 1 << 20, 1), "takes no block back"),
        (lambda: SlabResource(HostResource(), 1 << 20, 8192), "never gives more than 8192 bytes"),
        (lambda: LimitingResource(HostResource(), 3 * PAGE - 1), "takes three pages of 4096"),
    ],
)
def test_an_upstream_that_has_no_pages_is_refused(upstream, words):
    with pytest.raises(InputError, match=words):
        GuardPageResource(upstream())


def test_a_composite_is_an_upstream():
    memory = GuardPageResource(CompositeResource(HostResource(), 1 << 22))
    blocks = [memory.allocate(size) for size in range(1, 200)]
    for size, address in enumerate(blocks, 1):
        memory.deallocate(address, size)
    memory.trim()
    assert memory.upstream.statistics().current_count == 0
