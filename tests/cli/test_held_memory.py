"""Watched processes: the largest, their sum, and those that outlive their parents."""

import time

from tests.cli.holding_process import HOLDING, MIB, ended, started
from tightship.cli.held_memory import Watch
from tightship.cli.process_tree import with_descendants


def test_a_process_is_read_until_it_ends() -> None:
    process = started(HOLDING)
    watch = Watch(process.pid)
    assert 0 < watch.look() < 10
    ended(process)
    before = watch.held.data_bytes
    assert before > 64 * MIB
    assert watch.held.resident_bytes > 64 * MIB
    watch.look()
    assert watch.held.data_bytes == before
    assert watch.held.process_count == 1


def test_children_and_orphans_are_watched() -> None:
    """The middle process ends, and its child goes on."""
    inner = f"import time; held = bytearray({64 * MIB}); print('ready', flush=True); input()"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}]); input()"
    process = started(code)
    watch = Watch(process.pid)
    time.sleep(0.01)
    watch.look()
    assert watch.held.process_count == 2
    child = with_descendants([process.pid])[1]
    process.kill()
    process.wait()
    time.sleep(0.3)
    watch.look()
    assert watch._pids == [child]
    assert watch.held.data_bytes > 64 * MIB
    assert watch.held.together_data_bytes > watch.held.data_bytes
    process.stdin.close()
    process.stdout.close()
