"""What the operating system says of this process."""

from pathlib import Path


def resident_bytes() -> int:
    """Resident memory now."""
    return _status("VmRSS")


def peak_resident_bytes() -> int:
    """The most that was ever resident."""
    return _status("VmHWM")


def data_bytes() -> int:
    """What the process has reserved for writing; a limit on data (`ulimit -d`) counts this."""
    return _status("VmData")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0
