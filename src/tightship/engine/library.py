"""Finds and opens the libdnnl that serves this process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tightship import _core
from tightship.engine.primitive_cache import process_cache
from tightship.errors import InputError, LibraryError

VARIABLE = "TIGHTSHIP_DNNL_LIBRARY"

THREADS_MAX = 1024
"""Most threads of a kernel: the size of the thread team of `native/omp`."""


def open_library() -> None:
    """Open oneDNN: the library `TIGHTSHIP_DNNL_LIBRARY` names, or the copy in this package.

    Raises:
        LibraryError: The library cannot be opened, or is not oneDNN 3.2 or a later 3.x; the message
            names the file and what to install or set.
        InputError: `TIGHTSHIP_PRIMITIVE_CACHE_CAPACITY` is not a number of primitives.
    """
    if not _core.HAS_ONEDNN or _core.onednn_is_open():
        return
    chosen = os.environ.get(VARIABLE)
    path = chosen or bundled()
    process_cache()
    try:
        _core.onednn_open(path)
    except _core.OneDnnLibraryError as error:
        raise LibraryError(_advice(path, str(error), chosen=bool(chosen))) from None
    release_unused()


def check_threads(count: int) -> None:
    """Check a number of threads for kernels.

    Raises:
        InputError: The number is not from 1 to `THREADS_MAX`.
    """
    if not 1 <= count <= THREADS_MAX:
        raise InputError(f"`threads` is {count}; it must be from 1 to {THREADS_MAX}.")


def check_workers(count: int, threads: int) -> None:
    """Check a number of workers for kernels of a number of threads.

    Raises:
        InputError: The number is not from 1 to `THREADS_MAX`, or is more than 1 although kernels
            have several threads.
    """
    if not 1 <= count <= THREADS_MAX:
        raise InputError(f"`workers` is {count}; it must be from 1 to {THREADS_MAX}.")
    if count > 1 and threads > 1:
        raise InputError(
            f"`workers` is {count}; workers need steps of one thread each, and the model's have "
            f"{threads}. Load it with `threads=1`."
        )


@contextmanager
def library_threads(count: int) -> Iterator[None]:
    """Have primitives that are described in this block run on `count` threads.

    Raises:
        InputError: `count` is not from 1 to `THREADS_MAX`.
    """
    check_threads(count)
    before = _core.onednn_threads() if _core.HAS_ONEDNN and _core.onednn_is_open() else None
    if before is not None:
        _core.set_onednn_threads(count)
    try:
        yield
    finally:
        if before is not None:
            _core.set_onednn_threads(before)


def seals_code() -> bool:
    """Whether only filled pages of generated code count as data, as in the bundled library.

    The library must be open.
    """
    return _core.onednn_openmp() == "tightship"


def release_unused() -> None:
    """Give back pages that opening oneDNN or compiling kernels touched and runs do not need.

    These are freed heap and code: opening alone runs initializers all over the library.
    """
    release_heap()
    _core.release_code(_core.__file__)
    if _core.HAS_ONEDNN and _core.onednn_is_open():
        _core.release_code(_core.onednn_path())


def release_heap() -> None:
    """Give freed heap back to the system; takes a tenth of a millisecond."""
    _core.release_heap()


def bundled() -> str:
    """Return the path of the copy in this package."""
    return os.path.join(os.path.dirname(_core.__file__), "libdnnl.so.3")


def _advice(path: str, reason: str, *, chosen: bool) -> str:
    text = f"oneDNN cannot be used from `{path}`: {reason.rstrip('.')}."
    if chosen:
        text += f" {VARIABLE} chose it; unset it to use the copy that comes with tightship."
        if "libgomp" in reason:
            text += " It needs GCC's OpenMP runtime (Debian: `apt-get install libgomp1`)."
        return text
    return text + f" Set {VARIABLE} to a libdnnl.so.3 of oneDNN 3.2 or later."


def library_key() -> dict[str, str]:
    """Describe what kernels depend on: library version, CPU features, OpenMP runtime."""
    if not _core.HAS_ONEDNN or not _core.onednn_is_open():
        return {"kernels": "NumPy only (built without oneDNN)"}
    isa = _core.onednn_cpu_isa()
    return {
        "onednn": _core.onednn_version(),
        "cpu_isa": ISA_NAMES.get(isa, hex(isa)),
        "openmp": _core.onednn_openmp(),
    }


ISA_NAMES = {
    0x1: "sse41",
    0x3: "avx",
    0x7: "avx2",
    0xF: "avx2_vnni",
    0x1F: "avx2_vnni_2",
    0x27: "avx512_core",
    0x67: "avx512_core_vnni",
    0xE7: "avx512_core_bf16",
    0x1EF: "avx512_core_fp16",
    0xFEF: "avx512_core_amx",
    0x1FEF: "avx512_core_amx_fp16",
}
"""Names of oneDNN's ISA masks."""
