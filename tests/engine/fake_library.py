"""Libraries that call themselves oneDNN or an OpenMP runtime, made for a test."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

VERSION = """
typedef struct { int major, minor, patch; const char *hash; unsigned cpu, gpu; } version_t;
static const version_t version = {%d, %d, 0, "fake", 0, 0};
const version_t *dnnl_version(void) { return &version; }
"""
ABORTING = """
#include <stdlib.h>
#define ABORT(name) void name(void) { abort(); }
"""
REFUSING = """
#define _GNU_SOURCE
#include <dlfcn.h>
int calls_left = -1;
typedef int (*call_t)(long, long, long, long, long, long, long);
#define REFUSE(name) int name(long a, long b, long c, long d, long e, long f, long g) { \\
    if (calls_left == 0) { calls_left = -1; return 1; } \\
    if (calls_left > 0) --calls_left; \\
    return ((call_t)dlsym(RTLD_NEXT, #name))(a, b, c, d, e, f, g); \\
}
"""
REFUSED = (
    "matmul_primitive_desc_create primitive_create memory_create stream_create memory_desc_clone "
    "memory_desc_create_with_strides memory_desc_create_with_tag memory_desc_reshape "
    "post_ops_create post_ops_append_eltwise primitive_attr_create primitive_execute"
)
"""Functions of integers and pointers, seven at most, that answer with a status."""
INTERPOSED = (
    "GOMP_parallel_start GOMP_parallel_end GOMP_parallel GOMP_barrier GOMP_loop_static_start "
    "GOMP_loop_static_next GOMP_loop_end_nowait omp_get_max_threads omp_get_num_threads "
    "omp_get_thread_num omp_in_parallel omp_set_num_threads dnnl_primitive_create "
    "dnnl_primitive_execute dnnl_memory_create dnnl_stream_create dnnl_primitive_desc_query "
    "dnnl_memory_desc_query dnnl_memory_desc_get_size dnnl_engine_create dnnl_primitive_desc_clone"
)


def compiled(folder: Path, name: str, source: str, *options: str | Path) -> Path:
    """A shared library; skips without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C compiler to make a fake library with")
    code, library = folder / f"{name}.c", folder / name
    code.write_text(source)
    options = (f"-Wl,-soname,{name}", *options)
    command = [compiler, "-x", "c", "-shared", "-fPIC", code, "-x", "none", *options, "-o", library]
    subprocess.run(command, check=True, capture_output=True)
    return library


def fake_library(folder: Path, major: int, minor: int, *options: str | Path) -> Path:
    """A `libdnnl.so.3` that knows its version and nothing else."""
    return compiled(folder, "libdnnl.so.3", VERSION % (major, minor), *options)


def without_openmp(folder: Path) -> Path:
    """A `libdnnl.so.3` that needs a libgomp which no system has."""
    openmp = compiled(folder, "libgomp.so.0", "int unused;")
    library = fake_library(folder, 3, 2, "-Wl,--no-as-needed", openmp)
    openmp.unlink()
    return library


def interposing(folder: Path) -> Path:
    """A library with functions of OpenMP and oneDNN that abort."""
    functions = "\n".join(f"ABORT({name})" for name in INTERPOSED.split())
    return compiled(folder, "libinterposing.so", ABORTING + functions)


def refusing(folder: Path, library: Path) -> Path:
    """The package's libdnnl, out of memory when so many more calls have been made: `calls_left`.

    That is an int, and -1 again then.
    """
    named = folder / "libtsdnnl.so"
    named.symlink_to(library)
    (folder / "libtsomp.so").symlink_to(library.with_name("libtsomp.so"))
    functions = "\n".join(f"REFUSE(dnnl_{name})" for name in REFUSED.split())
    options = ("-Wl,--no-as-needed", named, f"-Wl,-rpath,{folder}", "-ldl")
    return compiled(folder, "librefusing.so", REFUSING + functions, *options)


def with_libgomp(folder: Path, library: Path) -> Path:
    """The package's libdnnl as others have it: on libgomp; skips where there is none."""
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        pytest.skip("the system has no libgomp.so.1")
    content = library.read_bytes()
    for ours, theirs in (
        (b"\0libtsomp.so\0\0", b"\0libgomp.so.1\0"),
        (b"\0libtsdnnl.so\0", b"\0libdnnl.so.3\0"),
        (b"\0tsm_seal\0", b"\0mprotect\0"),
        (b"\0tsm_on_load\0\0\0\0", b"\0__gmon_start__\0"),
        (b"\0TSMP_", b"\0GOMP_"),
        (b"\0tsm_", b"\0omp_"),
    ):
        assert ours in content
        content = content.replace(ours, theirs)
    copy = folder / "libdnnl.so.3"
    copy.write_bytes(content)
    return copy
