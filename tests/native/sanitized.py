"""Availability of sanitizers, and the cache of compiled files."""

import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
LIBRARIES = {"thread": "libtsan.so", "address,undefined": "libasan.so"}


def require_sanitizer(name: str) -> None:
    """Skip the test where the compiler comes without the sanitizer's library."""
    found = shutil.which("g++") and subprocess.run(
        ["g++", f"-print-file-name={LIBRARIES[name]}"], capture_output=True, text=True, check=True
    )
    if not found or not Path(found.stdout.strip()).is_absolute():
        pytest.skip(f"there is no g++ with the library of -fsanitize={name}")


def launcher() -> list[str]:
    """Return the command before the compiler's: a compiler cache, if there is one."""
    found = shutil.which("ccache")
    return [found] if found else []
