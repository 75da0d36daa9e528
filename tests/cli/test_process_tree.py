"""Processes and their descendants, read from the system."""

import os
from pathlib import Path

from tests.cli.holding_process import HOLDING, MIB, ended, started
from tightship.cli.process_tree import holding, with_descendants


def test_data_is_what_the_kernel_counts_against_the_limit() -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    data = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
    assert abs(holding(os.getpid()).data_bytes - data) < MIB


def test_an_ended_process_is_none() -> None:
    process = started(HOLDING)
    ended(process)
    assert holding(process.pid) is None
    assert with_descendants([process.pid]) == [process.pid]
