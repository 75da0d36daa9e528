"""Threads on memory resources, the primitive cache and pools, compiled with sanitizers.

    python -m pytest -m slow tests/native/test_stress.py

Builds and runs what `native/stress.cmake` lists, by its presets: minutes for each.
Needs cmake, ninja and g++ with libtsan and libasan.
"""

import shutil
import subprocess
import sys

import pytest

from tests.native.sanitized import NATIVE, launcher, require_sanitizer

SANITIZERS = {"tsan": "thread", "asan": "address,undefined"}


@pytest.mark.slow
@pytest.mark.parametrize("preset", SANITIZERS)
def test_threads_stress_what_they_share_clean(preset, tmp_path):
    require_sanitizer(SANITIZERS[preset])
    if not all(map(shutil.which, ("cmake", "ctest", "ninja"))):
        pytest.skip("no cmake or ninja; `pip install --group build` brings them")
    configure = (
        "cmake", "-S", NATIVE, "--preset", preset, "-B", tmp_path,
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(launcher())}",
    )  # fmt: skip
    build = ("cmake", "--build", tmp_path, "--target", "stress")
    check = ("ctest", "--test-dir", tmp_path, "--output-on-failure", "--no-tests=error")
    for command in (configure, build, check):
        done = subprocess.run(command, cwd=NATIVE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
