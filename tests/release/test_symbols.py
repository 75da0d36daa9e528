"""A symbol that only newer systems have is found, although it has no version."""

import shutil
import subprocess
from pathlib import Path

import pytest
from release.commands import ReleaseError
from release.symbols import check_symbols, unresolved

from tightship import _core

SOURCE = """#include <cstring>
extern "C" int of_later(const char *);
extern "C" __attribute__((weak)) int perhaps();
extern "C" void *Py_Some();
extern "C" int all(const char *a) {
    return of_later(a) + int(strlen(a)) + (perhaps ? perhaps() : 0) + (Py_Some() != nullptr);
}
"""


def compiled(folder: Path, source: str) -> Path:
    compiler = shutil.which("g++")
    if compiler is None or shutil.which("nm") is None:
        pytest.skip("no C++ compiler, or no `nm`, to make a library with")
    library = folder / "some.so"
    (folder / "some.cpp").write_text(source)
    flags = ["-shared", "-fPIC", "-fno-builtin"]
    subprocess.run([compiler, *flags, folder / "some.cpp", "-o", library], check=True)
    return library


def test_a_symbol_without_a_version_is_found(tmp_path: Path) -> None:
    library = compiled(tmp_path, SOURCE)
    assert unresolved(library) == ["of_later"]
    with pytest.raises(ReleaseError, match=r"some\.so needs `of_later`.*newer_glibc"):
        check_symbols(library)


def test_the_core_of_this_build_leaves_none() -> None:
    if shutil.which("nm") is None:
        pytest.skip("no `nm`")
    check_symbols(Path(_core.__file__))
