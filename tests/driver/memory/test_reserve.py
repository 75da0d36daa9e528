"""Work takes memory only while the reserve stays free."""

import mmap
import subprocess
import sys

import pytest

from tightship.driver.memory.reserve import RESERVE_BYTES, reserved
from tightship.errors import OutOfMemoryError

WORK = """
import mmap, resource, sys
from pathlib import Path
from tightship.driver.memory.reserve import RESERVE_BYTES, reserved

def take():
    return mmap.mmap(-1, RESERVE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

take().close()
lines = Path("/proc/self/status").read_text().splitlines()
used = int(next(line for line in lines if line.startswith("VmData:")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + RESERVE_BYTES * 3 // 2, -1))
taken = []
try:
    with reserved():
        taken.append(take())
except OSError as error:
    print("refused", error.errno)
print("left", len(take()))
"""


def test_failed_work_leaves_the_reserve():
    found = subprocess.run([sys.executable, "-c", WORK], check=True, capture_output=True, text=True)
    assert found.stdout.splitlines() == ["refused 12", f"left {RESERVE_BYTES}"]


def test_nothing_begins_without_the_reserve(monkeypatch):
    def refuse(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(OutOfMemoryError, match="1048576 bytes that the driver needs"), reserved():
        pytest.fail("the work began")
