"""The relay that recurrent layers hand rounds on by, run by threads of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "native/src/kernels/recurrent"


@pytest.mark.parametrize(
    "flags", [(), pytest.param(("-fsanitize=thread",), marks=pytest.mark.slow)]
)
def test_every_part_is_done_once_even_if_members_come_late(flags, tmp_path):
    compiler, program = shutil.which("g++"), tmp_path / "stress"
    if compiler is None or not KERNELS.exists():
        pytest.skip("no C++ compiler, or no sources, to make a program with")
    source = Path(__file__).with_name("stress_relay.cpp")
    command = [compiler, "-std=c++20", "-O1", "-pthread", *flags, f"-I{KERNELS}", source,
               "-o", program]  # fmt: skip
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if flags and built.returncode != 0:
        pytest.skip("the compiler has no sanitizer for threads")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer does not run on this system")
    assert done.returncode == 0, done.stdout + done.stderr
