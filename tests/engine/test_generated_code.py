"""Generated code takes the pages that it fills, and is not reserved for writing."""

import ctypes
import mmap
import subprocess
import sys

import pytest

from tests.engine.test_openmp import RUNTIME
from tests.zoo import light
from tightship import _core

PAGE = mmap.PAGESIZE
RESERVED = 256 << 10
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
    """What the process may do with the page at an address."""
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
    library.tsm_sealed_bytes.restype = ctypes.c_size_t
    library.tsm_seal.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return library


@pytest.mark.parametrize("pages", [1, 3, 64])
def test_what_code_does_not_fill_is_no_longer_writable(runtime: ctypes.CDLL, pages: int) -> None:
    with mmap.mmap(-1, RESERVED, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block[: pages * PAGE] = b"\xc3" * (pages * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(block))
        before = runtime.tsm_sealed_bytes()
        flags = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        assert runtime.tsm_seal(start, RESERVED, flags) == 0
        assert access(start) == access(start + pages * PAGE - 1) == "rwxp"
        if pages < 60:
            assert access(start + (pages + 2) * PAGE) == access(start + RESERVED - 1) == "r-xp"
        assert runtime.tsm_sealed_bytes() - before == pages * PAGE
        ctypes.CFUNCTYPE(None)(start)()
        assert runtime.tsm_seal(start, RESERVED, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        assert access(start) == "rw-p"
        assert runtime.tsm_sealed_bytes() - before == pages * PAGE


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_little_code_of_a_loaded_model_is_writable() -> None:
    command = [sys.executable, "-c", LOADED, light.path_of("squeezenet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line]
    sizes = {"rwxp": 0, "r-xp": 0}
    for limits, flags, *rest in lines:
        if flags in sizes and len(rest) == 3:
            start, stop = (int(limit, 16) for limit in limits.split("-"))
            sizes[flags] += stop - start
    assert 0 < sizes["rwxp"] < sizes["r-xp"] / 4
