"""Mappings of a process by kind."""

import os
import subprocess
import sys
from contextlib import suppress

from tests.cli.holding_process import HOLDING, MIB, ended, started
from tightship.cli.mapping_kinds import kinds_of
from tightship.cli.process_tree import holding


def test_kinds_sum_to_the_data_and_the_resident_bytes_of_the_process() -> None:
    process = started(HOLDING)
    whole, kinds = holding(process.pid), kinds_of(process.pid)
    ended(process)
    assert sum(each.data_bytes for each in kinds.values()) == whole.data_bytes
    resident = sum(each.resident_bytes for each in kinds.values())
    assert abs(resident - whole.resident_bytes) < MIB // 4
    assert kinds["anonymous"].resident_bytes > 64 * MIB
    assert kinds["main stack"].data_bytes == 0


def test_a_process_that_has_ended_and_was_not_waited_for_has_no_kinds() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with suppress(OSError):  # kernels differ in what they say
        assert kinds_of(process.pid) == {}
    process.wait()
