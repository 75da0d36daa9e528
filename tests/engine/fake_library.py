"""Libraries that call themselves oneDNN, compiled for a test."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = """
typedef struct { int major, minor, patch; const char *hash; unsigned cpu, gpu; } version_t;
static const version_t version = {%d, %d, 0, "fake", 0, 0};
const version_t *dnnl_version(void) { return &version; }
"""


def fake_library(folder: Path, major: int, minor: int) -> Path:
    """A `libdnnl.so.3` that knows its version and nothing else; skips without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C compiler to make a fake library with")
    source, library = folder / "fake.c", folder / "libdnnl.so.3"
    source.write_text(SOURCE % (major, minor))
    soname = "-Wl,-soname,libdnnl.so.3"
    command = [compiler, "-x", "c", "-shared", "-fPIC", soname, str(source), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True)
    return library


def without_openmp(folder: Path, library: Path) -> Path:
    """A copy of a libdnnl that needs a libgomp which no system has."""
    copy = folder / "libdnnl.so.3"
    content = library.read_bytes()
    assert b"libgomp.so.1\0" in content
    copy.write_bytes(content.replace(b"libgomp.so.1\0", b"libgomp.so.0\0"))
    return copy
