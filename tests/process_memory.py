"""Memory of this process as the system counts it."""

from pathlib import Path


def data_bytes() -> int:
    """Return the bytes that RLIMIT_DATA bounds."""
    return _field("/proc/self/status", "VmData:")


def pss_bytes() -> int:
    """Return the resident bytes, each divided by the number of times it is mapped."""
    return _field("/proc/self/smaps_rollup", "Pss:")


def written_pss_bytes() -> int:
    """Return likewise those that are not of files: no other process changes a share of these."""
    return sum(_field("/proc/self/smaps_rollup", name) for name in ("Pss_Anon:", "Pss_Shmem:"))


def _field(path: str, name: str) -> int:
    for line in Path(path).read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise AssertionError(name)
