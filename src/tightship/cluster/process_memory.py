"""Memory of this process as the kernel counts it, and the limit on what it may write."""

import ctypes
import resource
from pathlib import Path

KIB = 1024
STACK_BYTES = 1 << 20
BLOCK_BYTES = 128 << 10
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
ATTRIBUTES_BYTES = 256
"""Room for `pthread_attr_t` of glibc, which has 56 bytes."""

START_FIELD = 19
"""Index of the start time in `/proc/PID/stat`, counted behind the name of the program."""


def pss_bytes(pid: int | None = None) -> int:
    """Return the proportional set size: a page that n processes map counts as 1/n page.

    Mappings of Ray's object store do not count, because Ray books them by themselves.

    Args:
        pid: Process of this user; by default this one.

    Raises:
        OSError: The process has ended, or belongs to another user.
    """
    from tightship.resource.resident import mapped

    return sum(
        _amount(line)
        for found in mapped(Path(f"/proc/{pid or 'self'}/smaps"))
        if "/plasma" not in found.header
        for line in found.lines
        if line.startswith("Pss:")
    )


def start_ticks(pid: int) -> int:
    """Return the time at which a process started, which tells it from others of its number.

    Raises:
        OSError: The process has ended.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return int(after_name.split()[START_FIELD])


def data_bytes() -> int:
    """Return the writable private memory that this process has reserved (VmData)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(_amount(line) for line in lines if line.startswith("VmData:"))


def limit_data(before_bytes: int, further_bytes: int) -> int:
    """Let this process reserve so many bytes beyond what it had before, and no further.

    Needs no privilege. Allocations beyond fail in this process alone. A lower limit that is set
    already stays.

    Args:
        before_bytes: What `data_bytes` returned. It is not read again here: Ray's own threads start
            at any moment, so a second reading would differ from the one that the caller reports.
        further_bytes: What may come on top, in bytes.

    Returns:
        The limit in bytes.
    """
    limit = before_bytes + further_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return limit


def small_stacks() -> None:
    """Give threads that start from now on stacks of `STACK_BYTES`.

    Ray starts threads as calls come. By the usual limit each reserves 8 MiB and touches some
    kilobytes; all of it counts as data, so that under a limit the second or third cannot start, and
    the process ends.
    """
    libc = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(ATTRIBUTES_BYTES)
    if libc.pthread_getattr_default_np(attributes) == 0:
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
        libc.pthread_setattr_default_np(attributes)


def return_blocks() -> None:
    """Have blocks of `BLOCK_BYTES` and more returned to the system as soon as they are freed.

    By default glibc raises that size to the largest block that was freed, up to 32 MiB, and then
    keeps what large messages took.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES)
        libc.mallopt(M_TRIM_THRESHOLD, BLOCK_BYTES)


def _amount(line: str) -> int:
    return int(line.split()[1]) * KIB
