"""Both policies where the system gives few addresses, and few mappings."""

import subprocess
import sys

import pytest

from tightship.resource.virtual import process_mappings

POLICIES = {
    "stealing": "StealingVirtualResource(HostDevice(), page_bytes={})",
    "seed": "SeedVirtualResource(HostDevice(), {})",
}

LITTLE_ADDRESS_SPACE = """
import resource, ctypes
from tightship.resource.virtual import HostDevice, SeedVirtualResource, StealingVirtualResource
from tightship.errors import OutOfMemoryError
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
pool = MADE
ctypes.memset(pool.allocate(32 << 20), 1, 32 << 20)
try:
    pool.allocate(1 << 30)
except OutOfMemoryError:
    ctypes.memset(pool.allocate(8 << 20), 1, 8 << 20)
    print("fine")
"""

FULL_MAP_TABLE = """
import ctypes, mmap
from tightship.errors import OutOfMemoryError
from tightship.resource.virtual import HostDevice, SeedVirtualResource, StealingVirtualResource

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]

pool = MADE
held = pool.allocate(1 << 20)
blocks = [pool.allocate(1 << 17) for _ in range(64)]
for block in blocks[::2]:
    ctypes.memset(block, 1, 1 << 17)
    pool.deallocate(block, 1 << 17)
pages = 1 << 18
start = libc.mmap(0, pages * 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
for page in range(0, pages, 2):  # each takes two mappings more
    if libc.mprotect(start + page * 4096, 4096, 1) != 0:
        break
else:
    raise SystemExit("no limit")
try:
    pool.allocate(1 << 22)  # of pages that are to be moved
    more = [pool.allocate(1 << 16) for _ in range(4000)]
except OutOfMemoryError as error:
    print("mappings" in str(error))
ctypes.memset(held, 1, 1 << 20)
libc.munmap(ctypes.c_size_t(start), ctypes.c_size_t(pages * 4096))
ctypes.memset(pool.allocate(8 << 20), 1, 8 << 20)
pool.deallocate(held, 1 << 20)
print(pool.virtual_statistics().requested_bytes >= 8 << 20)
"""


def run(program, policy, page_bytes):
    made = program.replace("MADE", POLICIES[policy].format(page_bytes))
    return subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("policy", POLICIES)
def test_it_works_within_little_address_space(policy):
    done = run(LITTLE_ADDRESS_SPACE, policy, 2 << 20)
    assert (done.stdout, done.stderr) == ("fine\n", "")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_full_table_of_mappings_is_a_refusal_that_names_it(policy):
    done = run(FULL_MAP_TABLE, policy, 1 << 16)
    assert (done.stderr, done.stdout.splitlines()) == ("", ["True", "True"])


def test_mappings_of_the_process_are_counted():
    count, limit = process_mappings()
    assert 10 < count < limit
