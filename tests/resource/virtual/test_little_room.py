"""Both policies where the system gives few addresses, and few mappings."""

import subprocess
import sys

import pytest

from tightship.resource.virtual import process_mappings

POLICIES = {
    "stealing": "StealingVirtualResource(HostDevice(), page_bytes={})",
    "seed": "ChunkedVirtualResource(HostDevice(), {})",
}

LITTLE_ADDRESS_SPACE = """
import resource, ctypes
from tightship.resource.virtual import HostDevice, ChunkedVirtualResource, StealingVirtualResource
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
from tightship.resource.virtual import HostDevice, ChunkedVirtualResource, StealingVirtualResource

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


MANY_MAPPINGS = """
import ctypes, gc, threading
from tightship.errors import OutOfMemoryError
from tightship.resource import FreeListResource, GuardPageResource, HostResource
from tightship.resource.virtual import *

PAGE = 4096
pool = MADE
count, limit = process_mappings()
blocks = []
try:
    while len(blocks) < limit + 10_000:
        blocks.append(pool.allocate(PAGE))
except OutOfMemoryError as error:
    assert f"of the {limit} mappings" in str(error), error
for number, block in enumerate(blocks[1::2]):
    ctypes.memset(block, number % 251 + 1, 8)
for block in blocks[::2]:
    pool.deallocate(block, PAGE)
given = 0
try:
    for size in [16 * PAGE] * 40 + [1024 * PAGE] * 20 + [PAGE * (limit // 2)]:
        ctypes.memset(pool.allocate(size), 255, size)
        given += 1
except OutOfMemoryError as error:
    assert f"of the {limit} mappings" in str(error), error
assert process_mappings()[0] <= limit // 2, process_mappings()
for number, block in enumerate(blocks[1::2]):
    assert ctypes.string_at(block, 8) == bytes([number % 251 + 1]) * 8
threading.Thread(target=gc.collect).start()
import decimal, sqlite3
pool.trim()
assert process_mappings()[0] <= limit // 2, process_mappings()
print("given", given)
"""

ENDS_AT_THE_LIMIT = """
import ctypes, gc, mmap
from tightship.resource import FreeListResource, GuardedResource, GuardPageResource, HostResource
from tightship.resource.virtual import *

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
PAGE = 4096
pool = MADE
blocks = [pool.allocate(PAGE) for _ in range(60_000)]
for block in blocks[::3]:
    pool.deallocate(block, PAGE)
taken = ctypes.create_string_buffer(1 << 16)
pages = 1 << 18
start = libc.mmap(0, pages * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
for page in range(0, pages, 2):
    if libc.mprotect(start + page * PAGE, PAGE, 1) != 0:
        break
while libc.mmap(0, PAGE, page % 2, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0) != 2**64 - 1:
    page += 1
del pool
libc.munmap(ctypes.c_size_t(start), ctypes.c_size_t(pages * PAGE))
print("ended")
"""

OTHERS_HAVE_MANY = """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
limit = int(open("/proc/sys/vm/max_map_count").read())
start = libc.mmap(0, limit * 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
for page in range(0, limit * 6 // 10, 2):
    assert libc.mprotect(start + page * 4096, 4096, 1) == 0
from tightship.resource import HostResource
from tightship.resource.virtual import *
assert process_mappings()[0] > limit // 2
for pool in (HostResource(), MADE):
    pool.deallocate(pool.allocate(64 << 20), 64 << 20)
print("fine")
"""

RESOURCES = {
    "stealing": "StealingVirtualResource(HostDevice(), page_bytes=PAGE)",
    "stealing shared": "StealingVirtualResource(SharedDevice(), page_bytes=PAGE)",
    "seed": "ChunkedVirtualResource(HostDevice(), PAGE)",
    "seed shared": "ChunkedVirtualResource(SharedDevice(), PAGE)",
    "guard pages": "GuardPageResource(FreeListResource(HostResource(), chunk_bytes=64 << 20))",
}

SOME_SLOW = [
    pytest.param(name, marks=[] if name == "stealing" else pytest.mark.slow) for name in RESOURCES
]

few_mappings = pytest.mark.skipif(
    not 10_000 < process_mappings()[1] < 200_000, reason="the limit is too far to be reached"
)


def run(program, policy, page_bytes):
    return run_with(program, POLICIES[policy].format(page_bytes))


def run_with(program, made):
    made = program.replace("MADE", made)
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


@few_mappings
@pytest.mark.parametrize("name", SOME_SLOW)
def test_half_of_the_mappings_are_left_to_the_process(name):
    done = run_with(MANY_MAPPINGS, RESOURCES[name])
    assert (done.stderr, done.returncode) == ("", 0)
    # Private pages that may not move any more are made anew where they are wanted.
    assert done.stdout == "given 61\n" or name != "stealing"


@few_mappings
@pytest.mark.parametrize("name", SOME_SLOW)
def test_a_resource_ends_where_the_table_of_mappings_is_full(name):
    made = RESOURCES[name]
    program = ENDS_AT_THE_LIMIT
    if "seed" in name or "guard" in name:
        program = program.replace("60_000", "6_000")
    done = run_with(program, made)
    assert (done.stderr, done.stdout, done.returncode) == ("", "ended\n", 0)


@few_mappings
def test_a_process_that_has_many_mappings_of_its_own_is_served():
    done = run(OTHERS_HAVE_MANY, "stealing", 2 << 20)
    assert (done.stderr, done.stdout) == ("", "fine\n")
