import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.engine.fake_library import fake_library, without_openmp
from tests.zoo.light import randomised
from tightship import _core
from tightship.engine.library import VARIABLE, bundled

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

OPEN = """
import sys
from tightship.engine.library import open_library
from tightship.errors import LibraryError
try:
    open_library()
except LibraryError as error:
    sys.exit(str(error))
from tightship._core import onednn_path, onednn_version
print(onednn_version(), onednn_path())
"""
RESIDENT = """
import sys
from pathlib import Path
from tightship import _core
from tightship.engine.library import open_library
open_library()
_core.onednn_version()
path, lines = _core.onednn_path(), iter(Path("/proc/self/smaps").read_text().splitlines())
code = 0
for line in lines:
    if line.endswith(path) and "r-xp" in line:
        code += int(next(line for line in lines if line.startswith("Rss:")).split()[1]) << 10
print(code)
"""
PIECES = """
from tightship import _core
from tightship.engine.library import open_library
open_library()
for line in open("/proc/self/maps"):
    if line.strip().endswith(_core.onednn_path()) and "r-xp" in line:
        start, stop = (int(limit, 16) for limit in line.split()[0].split("-"))
        print(stop - start)
"""
PRELOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])\n"
RUN = """
import sys
import numpy as np
import tightship
x = np.load(sys.argv[2])
with tightship.load(sys.argv[1]) as model:
    (y,) = model.run({name: x for name in model.plan.inputs}).values()
    print(model.plan.key["cpu_isa"])
np.save(sys.argv[3], y)
"""


def run(code: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, as no process can change the oneDNN that it has opened."""
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(library: Path) -> str:
    """Return the error about a library that the variable names."""
    done = run(OPEN, **{VARIABLE: str(library)})
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert str(library) in done.stderr
    return done.stderr


def test_the_copy_in_the_package_is_used_where_nothing_else_is_said() -> None:
    done = run(OPEN)
    assert done.returncode == 0, done.stderr
    version, path = done.stdout.split()
    assert version.startswith("3.")
    assert Path(path).samefile(bundled())


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is resident")
def test_opening_leaves_next_to_no_code_resident() -> None:
    done = run(RESIDENT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1 << 20, "its initializers alone touch some 11 MB"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about mappings")
@pytest.mark.parametrize("is_chosen", [False, True])
def test_code_is_mapped_in_small_ranges(tmp_path: Path, is_chosen: bool) -> None:
    """Linux maps a large folio at once where it lies in one mapping."""
    copy = Path(shutil.copy(bundled(), tmp_path / "chosen.so"))
    done = run(PIECES, **({VARIABLE: str(copy)} if is_chosen else {}))
    assert done.returncode == 0, done.stderr
    pieces = [int(size) for size in done.stdout.split()]
    assert max(pieces) <= 128 << 10
    assert sum(pieces) > 32 << 20


def test_the_variable_chooses(tmp_path: Path) -> None:
    copy = shutil.copy(bundled(), tmp_path / "chosen.so")
    done = run(OPEN, **{VARIABLE: str(copy)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == str(copy)


@pytest.mark.parametrize("version", [(2, 7), (3, 1), (4, 0)])
def test_another_version_is_refused_by_name(tmp_path: Path, version: tuple[int, int]) -> None:
    said = refusal(fake_library(tmp_path, *version))
    assert f"oneDNN {version[0]}.{version[1]}.0" in said
    assert "3.2 or a later 3.x is needed" in said
    assert f"{VARIABLE} chose it" in said


def test_a_library_without_a_function_we_call_is_refused(tmp_path: Path) -> None:
    assert "has no function `dnnl_" in refusal(fake_library(tmp_path, 3, 5))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "libdnnl.so.3")


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "libdnnl.so.3"
    text.write_text("oneDNN 3.2, honestly\n")
    assert "invalid ELF header" in refusal(text) or "file too short" in refusal(text)


def test_a_missing_openmp_runtime_comes_with_what_to_install(tmp_path: Path) -> None:
    assert "apt-get install libgomp1" in refusal(without_openmp(tmp_path))


@pytest.mark.parametrize("version", [(2, 7), (3, 2), (4, 0)])
def test_one_that_is_loaded_already_is_left_alone(tmp_path: Path, version: tuple[int, int]) -> None:
    done = run(PRELOAD + OPEN, fake_library(tmp_path, *version))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.split()[1]).samefile(bundled())


def test_a_processor_with_nothing_but_sse41_computes_the_same(tmp_path: Path) -> None:
    path, given, got = randomised("squeezenet", 3, tmp_path), tmp_path / "x.npy", tmp_path / "y.npy"
    x = np.random.default_rng(4).standard_normal((1, 3, 224, 224)).astype(np.float32)
    np.save(given, x)
    done = run(RUN, path, given, got, ONEDNN_MAX_CPU_ISA="SSE41")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "sse41"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(np.load(got), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("call", ["onednn_cpu_isa()", "onednn_version()", "MemoryDesc([2, 3])"])
def test_what_needs_a_library_says_so_before_one_is_open(call):
    result = run(f"from tightship import _core\n_core.{call}")
    assert result.returncode == 1
    assert "OneDnnLibraryError: oneDNN is used before a library was opened" in result.stderr
