"""Mappings whose file may become shorter while the process uses them."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import faulthandler
import os
import sys

from tightship._core import GuardedMapping

path = sys.argv[1]
with open(path, "r+b") as file:
    for _ in range(2):
        os.truncate(path, 1 << 16)
        mapping = GuardedMapping(file.fileno(), 0, 1 << 16)
        data = mapping.array()
        data[:] = 1
        os.truncate(path, 0)
        assert data[5000] == 0
        assert mapping.is_lost
        del data, mapping
        faulthandler.enable()  # replaces the handler
print("guarded")
"""


def test_a_guard_holds_though_another_library_replaced_the_handler(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("guarded\n", "")
