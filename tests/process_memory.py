"""Memory of this process as the system counts it."""

from pathlib import Path


def data_bytes() -> int:
    """Return the bytes that RLIMIT_DATA bounds."""
    return _field("/proc/self/status", "VmData:")


def written_pss_bytes() -> int:
    """Return the resident bytes of no file, each divided by the number of times it is mapped.

    Pages of libraries are left out: their share changes when another process begins or ends.
    """
    return sum(_field("/proc/self/smaps_rollup", name) for name in ("Pss_Anon:", "Pss_Shmem:"))


def _field(path: str, name: str) -> int:
    for line in Path(path).read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise AssertionError(name)
