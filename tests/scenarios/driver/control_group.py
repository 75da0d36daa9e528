"""Control groups with a limit on memory, where this process may make them."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOUNTED = Path("/sys/fs/cgroup")


@contextmanager
def control_group(limit_bytes: int) -> Iterator[str]:
    """Make a group of so many bytes and no swap for a process.

    Yields:
        A command by which a shell enters it; an empty text where none can be made.
    """
    is_first = (MOUNTED / "memory").is_dir()
    parent = MOUNTED / "memory" if is_first else MOUNTED
    try:
        folder = Path(tempfile.mkdtemp(prefix="tightship-test-", dir=parent))
    except OSError:
        yield ""
        return
    try:
        (folder / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(
            str(limit_bytes)
        )
        with suppress(OSError):  # the first version has no limit of swap alone
            (folder / "memory.swap.max").write_text("0")
        command = f'echo $$ > "{folder}/cgroup.procs"'
    except OSError:
        command = ""
    try:
        yield command
    finally:
        with suppress(OSError):
            os.rmdir(folder)
