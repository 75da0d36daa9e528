"""A lock is held by one at a time, also where its file is removed while others wait for it."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tightship.prepared_cache.lock import locked, locked_if_free


def test_only_one_holds_it_though_its_file_is_removed(tmp_path: Path) -> None:
    path, inside, most = tmp_path / "lock", [], []

    def come(number: int) -> None:
        with locked(path):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)
            path.unlink()  # from here on another may hold it

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(come, range(200)))
    assert most == [1] * 200


def test_it_is_not_waited_for_unless_that_is_asked(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"), locked_if_free(tmp_path / "lock") as is_ours:
        assert not is_ours
    with locked_if_free(tmp_path / "lock") as is_ours:
        assert is_ours


def test_the_kernel_releases_it_when_its_holder_dies(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tightship.prepared_cache.lock import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, tmp_path / "lock"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"held\n"
        with locked_if_free(tmp_path / "lock") as is_ours:
            assert not is_ours
        process.send_signal(signal.SIGKILL)
    with locked_if_free(tmp_path / "lock") as is_ours:
        assert is_ours


FORK = """
import os, sys
from pathlib import Path
from tightship.prepared_cache.lock import locked, locked_if_free
read, write = os.pipe()
with locked(Path(sys.argv[1])):
    if os.fork() == 0:
        os.close(write)
        os.read(read, 1)  # until the parent ends
        os._exit(0)
with locked_if_free(Path(sys.argv[1])) as is_ours:
    print(is_ours)
"""


def test_a_child_that_was_forked_meanwhile_does_not_keep_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, tmp_path / "lock"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
