"""Changes of the build to oneDNN, applied to a library of a few lines."""

import ctypes
import importlib.util
import mmap
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.engine.fake_library import compiled
from tests.engine.test_generated_code import access
from tests.engine.test_openmp import RUNTIME

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not RUNTIME.exists(), reason="built without threads of its own")

SUM = """
#include <omp.h>
int inner(void) { return 1; }
int sum(int count) {
    int tickets[64] = {0}, total = 0;
    #pragma omp parallel num_threads(count)
    tickets[omp_get_thread_num()] += inner() * omp_get_num_threads();
    for (int i = 0; i < 64; ++i) total += tickets[i];
    return total;
}
"""
CODE = """
#include <omp.h>
#include <sys/mman.h>
int threads(void) { return omp_get_max_threads(); }
int seal(void *start, long size) {
    return mprotect(start, size, PROT_READ | PROT_WRITE | PROT_EXEC);
}
"""
CRITICAL = """
int total;
void add(void) {
    #pragma omp parallel
    #pragma omp critical
    ++total;
}
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "native/bundle_onednn.py"
    if not path.exists():
        pytest.skip("the sources of the build are not here")
    spec = importlib.util.spec_from_file_location("bundle_onednn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library(folder: Path, source: str, *options: str) -> Path:
    try:
        return compiled(folder, "libdnnl.so.3", source, *options)
    except subprocess.CalledProcessError:
        pytest.skip("the C compiler has no OpenMP")


def test_a_library_comes_to_run_on_our_threads(script: ModuleType, tmp_path: Path) -> None:
    source, copy = library(tmp_path, SUM, "-fopenmp", "-Wl,-z,now"), tmp_path / "copy.so"
    script.main(str(source), str(RUNTIME), str(copy))
    ours = ctypes.CDLL(str(copy))
    assert [ours.sum(count) for count in (1, 2, 5)] == [1, 4, 25]
    elf = script.Elf(copy.read_bytes())
    named = {elf.name(value) for _, tag, value in elf.entries() if tag in script.STRING_TAGS}
    assert {RUNTIME.name, script.OWN_NAME} <= named
    assert not {"libgomp.so.1", "libdnnl.so.3"} & named
    flags = {tag: value for _, tag, value in elf.entries()}
    assert script.SYMBOLIC in flags or flags[script.FLAGS] & script.IS_SYMBOLIC


def test_generated_code_comes_to_be_sealed(script: ModuleType, tmp_path: Path) -> None:
    source, copy = library(tmp_path, CODE, "-fopenmp", "-Wl,-z,now"), tmp_path / "copy.so"
    script.main(str(source), str(RUNTIME), str(copy))
    elf = script.Elf(copy.read_bytes())
    names = {elf.name(offset) for offset, is_defined in elf.symbols() if not is_defined}
    assert {"tsm_seal", "tsm_on_load"} <= names
    assert not {"mprotect", "__gmon_start__"} & names
    with mmap.mmap(-1, 1 << 18, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        start = ctypes.addressof(ctypes.c_char.from_buffer(block))
        assert ctypes.CDLL(str(copy)).seal(ctypes.c_void_p(start), 1 << 18) == 0
        assert access(start + (1 << 17)) == "rwxs"


def test_a_function_that_our_runtime_lacks_is_named(script: ModuleType, tmp_path: Path) -> None:
    source = library(tmp_path, CRITICAL, "-fopenmp", "-Wl,-z,now")
    with pytest.raises(SystemExit, match="calls `GOMP_critical_start`"):
        script.main(str(source), str(RUNTIME), str(tmp_path / "copy.so"))


def test_a_library_without_openmp_is_refused(script: ModuleType, tmp_path: Path) -> None:
    source = library(tmp_path, "int sum(int count) { return count; }")
    with pytest.raises(SystemExit, match=r"names `libgomp.so.1` 0 times"):
        script.main(str(source), str(RUNTIME), str(tmp_path / "copy.so"))


def test_a_file_that_is_no_library_is_refused(script: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "libdnnl.so.3"
    source.write_text("oneDNN, honestly")
    with pytest.raises(SystemExit, match="not a 64-bit little-endian ELF file"):
        script.main(str(source), str(RUNTIME), str(tmp_path / "copy.so"))


def test_a_name_that_others_end_in_is_not_changed(script: ModuleType, tmp_path: Path) -> None:
    source = library(tmp_path, "int sum_of_all(void) { return 1; } int of_all(void) { return 2; }")
    elf = script.Elf(source.read_bytes())
    names = {elf.name(offset): offset for offset, _ in elf.symbols()}
    if names["sum_of_all"] + 4 != names["of_all"]:
        pytest.skip("the linker does not share the ends of names")
    elf.rename(names["sum_of_all"], "add_of_all")
    assert elf.name(names["of_all"]) == "of_all"
    with pytest.raises(script.BundleError, match="without"):
        elf.rename(names["of_all"], "in_all")
