"""What the published allocator's rules cost, and the default policy does not (D14 to D19)."""

import random
import subprocess
import sys

from tests.resource.virtual.gate import Gate
from tightship.resource.virtual import HostDevice, SharedDevice, StealingVirtualResource

PAGE = 1 << 16


def make(device, **options):
    return StealingVirtualResource(device, page_bytes=PAGE, **options)


def test_d14_no_page_has_two_addresses_while_work_goes_on():
    resource, gate = make(SharedDevice(), patience_seconds=0), Gate()
    stream = gate.stream()
    address = resource.allocate_on(4 * PAGE, stream)
    resource.deallocate_on(address, 4 * PAGE, stream)
    resource.allocate_on(6 * PAGE, stream)
    now = resource.virtual_statistics()
    assert sum(block[2] for block in resource.blocks()) == now.physical_bytes
    assert (now.moved_count, now.waiting_count) == (0, 0)


def test_d15_a_small_block_takes_a_granule_and_not_a_page():
    resource = make(HostDevice())
    for _ in range(PAGE // 256):
        resource.allocate(4)
    assert resource.virtual_statistics().physical_bytes == PAGE


def test_d16_addresses_that_lost_their_pages_are_used_again():
    resource = make(HostDevice())
    highest = 0
    for _ in range(50):
        blocks = [resource.allocate(2 * PAGE) for _ in range(8)]
        for block in blocks[::2]:
            resource.deallocate(block, 2 * PAGE)
        large = resource.allocate(8 * PAGE)
        highest = max(highest, large)
        resource.deallocate(large, 8 * PAGE)
        for block in blocks[1::2]:
            resource.deallocate(block, 2 * PAGE)
    assert highest - min(blocks) <= 32 * PAGE


def test_d18_it_gives_back_keeps_a_budget_and_knows_its_peaks():
    resource = make(HostDevice(), max_bytes=64 * PAGE)
    resource.deallocate(resource.allocate(64 * PAGE), 64 * PAGE)
    assert resource.trim() == 64 * PAGE
    now = resource.virtual_statistics()
    assert (now.physical_bytes, now.peak_physical_bytes) == (0, 64 * PAGE)
    assert now.peak_allocated_bytes == 64 * PAGE


def test_d19_a_loop_of_equal_steps_moves_nothing_after_the_first():
    resource, choice = make(HostDevice()), random.Random(1)
    sizes = [choice.randrange(1, 40 * PAGE) for _ in range(30)]

    def step():
        blocks = [(resource.allocate(size), size) for size in sizes]
        random.Random(2).shuffle(blocks)
        for block in blocks:
            resource.deallocate(*block)

    step()
    before = resource.virtual_statistics()
    for _ in range(20):
        step()
    now = resource.virtual_statistics()
    assert now.created_count == before.created_count
    assert now.remap_count - before.remap_count <= 0.02 * 20 * len(sizes)


FULL_MAP_TABLE = """
import ctypes, mmap
from tightship.errors import OutOfMemoryError
from tightship.resource.virtual import HostDevice, StealingVirtualResource

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]

pool = StealingVirtualResource(HostDevice(), page_bytes=1 << 16)
held = pool.allocate(1 << 20)
pages = 1 << 18
start = libc.mmap(0, pages * 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
for page in range(0, pages, 2):  # each takes two mappings more
    if libc.mprotect(start + page * 4096, 4096, 1) != 0:
        break
else:
    raise SystemExit("no limit")
try:
    blocks = [pool.allocate(1 << 16) for _ in range(4000)]
except OutOfMemoryError as error:
    print("mappings" in str(error))
ctypes.memset(held, 1, 1 << 20)
libc.munmap(ctypes.c_size_t(start), ctypes.c_size_t(pages * 4096))
ctypes.memset(pool.allocate(8 << 20), 1, 8 << 20)
pool.deallocate(held, 1 << 20)
print(pool.virtual_statistics().requested_bytes >= 8 << 20)
"""


def test_a_full_table_of_mappings_is_a_refusal_that_names_it():
    done = subprocess.run(
        [sys.executable, "-c", FULL_MAP_TABLE], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout.splitlines()[-1:]) == ("", ["True"])
    assert done.stdout.splitlines()[0] == "True"
