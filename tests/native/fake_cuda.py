"""A CUDA driver for machines without one, compiled when a test first asks for it."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_cuda.cpp")
FOLDER = tempfile.TemporaryDirectory(prefix="fake_cuda")


@functools.cache
def library() -> str:
    """The compiled file. Skips the test where there is no compiler for it."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler to make a driver with")
    made = Path(FOLDER.name) / "libcuda_fake.so"
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, SOURCE, "-o", made], check=True)
    return str(made)


class FakeCuda:
    """A driver with a world of its own, and functions to set it up and read its counters."""

    def __init__(self, folder: Path) -> None:
        self.path = str(shutil.copy(library(), folder / "libcuda_fake.so"))
        self._library = ctypes.CDLL(self.path)
        self._library.fake_count.restype = ctypes.c_long
        self._library.fake_refuse.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long]
        self._library.fake_set.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._library.fake_begin.argtypes = self._library.fake_finish.argtypes = [ctypes.c_void_p]

    def refuse(self, name: str, first: int = 0, count: int = 1) -> None:
        """Refuses `count` calls from now on, after `first` more; of "any" name or one."""
        self._library.fake_refuse(name.encode(), first, count)

    def count(self, name: str) -> int:
        """Calls of a name so far, or of what there is: see `fake_count`."""
        return int(self._library.fake_count(name.encode()))

    def set(self, name: str, value: int) -> None:
        self._library.fake_set(name.encode(), value)

    def begin(self, stream: int) -> None:
        """The stream has work until it is finished."""
        self._library.fake_begin(stream)

    def finish(self, stream: int) -> None:
        self._library.fake_finish(stream)

    def thrown(self, allocate: Callable[..., object], size_bytes: int, device: int = 0) -> str:
        """Return the text that an allocator of C++ throws; empty if it throws nothing."""
        text = ctypes.create_string_buffer(400)
        size = ctypes.c_ssize_t(size_bytes)
        self._library.fake_thrown(allocate, size, device, text, ctypes.c_size_t(400))
        return text.value.decode()

    def is_empty(self) -> bool:
        """Whether nothing is held, and nothing was asked for that a driver would not do."""
        kinds = ("chunks", "reserved", "mapped", "events", "contexts", "misuses", "depth")
        return all(self.count(kind) == 0 for kind in kinds)
