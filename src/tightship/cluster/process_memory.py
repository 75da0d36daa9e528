"""Memory of this process as the kernel counts it, and the limit on what it may write."""

import resource
from pathlib import Path

KIB = 1024


def pss_bytes() -> int:
    """Return the proportional set size: a page that n processes map counts as 1/n page.

    Mappings of Ray's object store do not count, because Ray books them by themselves.
    """
    from tightship.resource.resident import mapped

    return sum(
        _amount(line)
        for found in mapped(Path("/proc/self/smaps"))
        if "/plasma" not in found.header
        for line in found.lines
        if line.startswith("Pss:")
    )


def data_bytes() -> int:
    """Return the writable private memory that this process has reserved (VmData)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(_amount(line) for line in lines if line.startswith("VmData:"))


def limit_data(further_bytes: int) -> int:
    """Let this process reserve so many bytes more, and no further; needs no privilege.

    Allocations beyond fail in this process alone. A lower limit that is set already stays.

    Returns:
        The limit in bytes.
    """
    limit = data_bytes() + further_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return limit


def _amount(line: str) -> int:
    return int(line.split()[1]) * KIB
