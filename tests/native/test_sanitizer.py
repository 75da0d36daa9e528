"""The core built with AddressSanitizer and UndefinedBehaviorSanitizer, run by tests of the engine.

    python -m pytest -m slow tests/native

Takes minutes: everything is compiled again. Needs cmake, nanobind and g++ with libasan.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.sanitized import launcher

ROOT = Path(__file__).parents[2]
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1"
TESTS = (
    "tests/engine/test_native.py",
    "tests/engine/test_catalogue.py",
    "tests/engine/run",
    "tests/engine/kernels",
    "tests/engine/lower",
    "tests/model",
    "tests/planner/placements",
    "tests/resource",
    "--deselect=tests/resource/test_host.py::test_freed_heap_below_what_is_held_can_be_given_back",
    "--deselect=tests/resource/test_malloc.py"
    "::test_malloc_holds_what_the_heap_of_a_new_process_has_grown_by",
    "--deselect=tests/resource/test_guard_page.py"
    "::test_every_access_beside_a_block_or_after_its_end_is_stopped_by_a_signal",
    "--deselect=tests/resource/test_places.py::test_main_memory_works_within_little_data",
    "--ignore=tests/resource/virtual/test_little_room.py",
    "--deselect=tests/engine/run/test_blas.py"
    "::test_a_refusal_is_an_error_and_the_buffer_is_reserved_once",
    "--deselect=tests/engine/lower/native/test_control.py"
    "::test_a_process_with_a_loop_stays_inside_its_plan",
    "--deselect=tests/engine/lower/native/test_block_product.py"
    "::test_a_row_has_the_same_bits_among_up_to_eight",
)  # fmt: skip
"""Tests that the sanitizer does not disturb.

Left out are those of the system's allocator, which the sanitizer replaces, of processes that end by
a signal, which it catches, of limits on a process's data and mappings, which it needs itself, and
of equal bits where the compiler multiplies and adds at once in one of two loops, as with `-O1`.
"""


def preloaded() -> str | None:
    """The sanitizer's library, and after it the one whose exceptions it watches; None if absent."""
    if shutil.which("g++") is None:
        return None
    names = ("libasan.so", "libstdc++.so.6")
    found = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True,
                       check=True).stdout.strip() for name in names
    ]  # fmt: skip
    return " ".join(found) if all(Path(path).is_absolute() for path in found) else None


def built(folder: Path) -> Path:
    """A copy of the package whose core is sanitized."""
    build, site = folder / "build", folder / "site"
    subprocess.run(
        ["cmake", "-S", ROOT / "native", "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
         f"-DCMAKE_CXX_FLAGS={FLAGS}", f"-DPython_EXECUTABLE={sys.executable}",
         f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(launcher())}",
         f"-DCMAKE_INSTALL_PREFIX={site}"], check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(["cmake", "--build", build, "-j", "2"], check=True, capture_output=True)
    subprocess.run(["cmake", "--install", build], check=True, capture_output=True)
    ignored = shutil.ignore_patterns("*.so", "*.so.*", "__pycache__")
    shutil.copytree(ROOT / "src/tightship", site / "tightship", ignore=ignored, dirs_exist_ok=True)
    return site


@pytest.mark.slow
def test_the_engine_runs_clean_under_sanitizers(tmp_path):
    libraries = preloaded()
    if libraries is None or not shutil.which("cmake") or not importlib.util.find_spec("nanobind"):
        pytest.skip("there is no g++ with libasan, no cmake, or no nanobind to build with")
    site = built(tmp_path)
    code = f"import tightship._core as core; assert core.__file__.startswith({str(site)!r})"
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "LD_PRELOAD": libraries,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    for arguments in (["-c", code], ["-m", "pytest", "-q", "--capture=sys", *TESTS]):
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment,
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        assert "runtime error" not in done.stderr
