"""Generated code takes the pages that it fills; what it leaves free counts once it is written."""

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.engine.test_openmp import RUNTIME
from tests.zoo import light
from tightship import _core

PAGE = mmap.PAGESIZE
RESERVED = 256 << 10
CODE = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
RETURN = b"\xc3"
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about mappings"),
    pytest.mark.skipif(not RUNTIME.exists(), reason="built without a runtime of its own"),
]

LOADED = """
import sys
import tightship
with tightship.load(sys.argv[1]):
    print(open("/proc/self/maps").read())
"""


def access(address: int) -> str:
    """Return the access that the process has to the page at an address."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            limits, flags = line.split()[:2]
            start, stop = (int(limit, 16) for limit in limits.split("-"))
            if start <= address < stop:
                return flags
    raise LookupError(hex(address))


@pytest.fixture
def runtime() -> ctypes.CDLL:
    library = ctypes.CDLL(str(RUNTIME))
    library.tsm_seal.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return library


@pytest.fixture
def reserved() -> Iterator[tuple[mmap.mmap, int]]:
    """Yield memory that oneDNN reserves for a kernel, and its address."""
    with mmap.mmap(-1, RESERVED, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        yield block, ctypes.addressof(ctypes.c_char.from_buffer(block))


def sizes(*fields: str) -> list[int]:
    """Fields of the process' status, in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        found = dict(line.split(":", 1) for line in status)
    return [int(found[field].split()[0]) << 10 for field in fields]


def call(address: int) -> None:
    ctypes.CFUNCTYPE(None)(address)()


@pytest.mark.parametrize("pages", [1, 3, 64])
def test_what_code_does_not_fill_is_shared_zeros(
    runtime: ctypes.CDLL, reserved: tuple[mmap.mmap, int], pages: int
) -> None:
    block, start = reserved
    block[: pages * PAGE] = RETURN * (pages * PAGE)
    before = sizes("VmData")[0]
    assert runtime.tsm_seal(start, RESERVED, CODE) == 0
    assert before - sizes("VmData")[0] == RESERVED - pages * PAGE
    assert access(start) == access(start + pages * PAGE - 1) == "rwxp"
    assert access(start + RESERVED - 1) == ("rwxs" if pages < 64 else "rwxp")
    assert not any(block[pages * PAGE :])
    call(start)
    assert runtime.tsm_seal(start, RESERVED, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    assert access(start)[:3] == access(start + RESERVED - 1)[:3] == "rw-"


def test_complete_code_may_be_written_everywhere(
    runtime: ctypes.CDLL, reserved: tuple[mmap.mmap, int]
) -> None:
    """The second write repeats oneDNN, which generates some kernels twice into one reservation."""
    block, start = reserved
    block[:1] = RETURN
    assert runtime.tsm_seal(start, RESERVED, CODE) == 0
    resident, data = sizes("VmRSS", "VmData")
    block[1:] = RETURN * (RESERVED - 1)
    now, data_now = sizes("VmRSS", "VmData")
    assert now - resident >= RESERVED - 2 * PAGE
    assert data_now == data
    assert runtime.tsm_seal(start, RESERVED, CODE) == 0
    for place in (0, 1, PAGE, RESERVED - 1):
        call(start + place)


def test_code_behind_pages_of_zeros_stays(
    runtime: ctypes.CDLL, reserved: tuple[mmap.mmap, int]
) -> None:
    """Pages of zeros may be resident, and pages that are not may hold code in swap."""
    block, start = reserved
    block[5 * PAGE : 5 * PAGE + 1] = RETURN
    block[7 * PAGE : 9 * PAGE] = bytes(2 * PAGE)
    assert runtime.tsm_seal(start, RESERVED - 100, CODE) == 0
    call(start + 5 * PAGE)
    assert access(start + 6 * PAGE - 1) == "rwxp"
    assert access(start + 6 * PAGE) == access(start + RESERVED - 1) == "rwxs"


def test_a_larger_reservation_is_sealed_too(runtime: ctypes.CDLL) -> None:
    with mmap.mmap(-1, 2 * RESERVED, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        start = ctypes.addressof(ctypes.c_char.from_buffer(block))
        block[RESERVED : RESERVED + 1] = RETURN
        assert runtime.tsm_seal(start, 2 * RESERVED, CODE) == 0
        assert access(start + RESERVED) == "rwxp"
        assert access(start + RESERVED + PAGE) == "rwxs"


def test_code_is_written_in_a_process_and_its_child(
    runtime: ctypes.CDLL, reserved: tuple[mmap.mmap, int]
) -> None:
    block, start = reserved
    block[:1] = RETURN
    assert runtime.tsm_seal(start, RESERVED, CODE) == 0
    child = os.fork()
    if child == 0:
        block[PAGE : PAGE + 1] = RETURN
        call(start + PAGE)
        os._exit(7)
    block[PAGE : PAGE + 1] = RETURN
    call(start + PAGE)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_little_code_of_a_loaded_model_counts_as_data() -> None:
    command = [sys.executable, "-c", LOADED, light.path_of("squeezenet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line]
    held = {"rwxp": 0, "rwxs": 0}
    for limits, flags, *_ in lines:
        if flags in held:
            start, stop = (int(limit, 16) for limit in limits.split("-"))
            held[flags] += stop - start
    assert 0 < held["rwxp"] < held["rwxs"] / 4
