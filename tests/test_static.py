"""Linters, type checker and formatters, over the whole repository.

A typed program of public names passes `mypy --strict` with the installed package, too.
"""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tightship
from tightship import _core

ROOT = Path(__file__).parents[1]
PROGRAM = Path(__file__).parent / "typed_program.py"
WRONG = """
import tightship

plan: int = tightship.plan("model.onnx")
tightship.load("model.onnx", max_memory=1.5)
tightship.planner.solve
tightship.resource.LimitingResource(tightship.resource.HostResource(), "1MiB").trim("all")
"""


def tool(name: str) -> str:
    """A tool of the test extra, in this environment before any other."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; `pip install '.[test]'` brings it")
    return found


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_ruff_finds_nothing() -> None:
    done = run(tool("ruff"), "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


def test_python_is_formatted() -> None:
    done = run(tool("ruff"), "format", "--no-cache", "--check", ".")
    assert done.returncode == 0, done.stdout


def test_every_type_is_right() -> None:
    done = run(tool("mypy"), "--strict")
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Output of the checker, in a folder that knows no source tree of the package.

    The check of the sources has left its results in the cache, which go by what a file contains.
    """
    folder = tmp_path_factory.mktemp("programs")
    shutil.copy(PROGRAM, folder / "program.py")
    (folder / "wrong.py").write_text(WRONG)
    command = [tool("mypy"), "--strict", "--python-executable", sys.executable]
    command += ["--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache")]
    done = run(*command, "program.py", "wrong.py", cwd=folder)
    assert done.stdout.endswith("in 1 file (checked 2 source files)\n"), done.stdout + done.stderr
    return done.stdout


def test_a_program_of_public_names_is_fully_typed(said: str) -> None:
    assert "program.py" not in said
    assert (Path(tightship.__file__).parent / "py.typed").is_file()


def test_wrong_types_are_seen(said: str) -> None:
    assert [f"wrong.py:{line}:" in said for line in (4, 5, 6, 7)] == [True] * 4


def test_native_code_is_formatted() -> None:
    sources = [path for pattern in ("*.cpp", "*.hpp") for path in (ROOT / "native").rglob(pattern)]
    done = run(tool("clang-format"), "--dry-run", "--Werror", *sources)
    assert done.returncode == 0, done.stderr


def test_the_stub_is_what_the_core_says_of_itself(tmp_path: Path) -> None:
    if not _core.HAS_ONEDNN:
        pytest.skip("the stub is that of a core with oneDNN; this one was built without")
    if importlib.util.find_spec("nanobind") is None:
        pytest.skip("nanobind is not installed; `pip install '.[test]'` brings it")
    said = tmp_path / "_core.pyi"
    module = ("-i", Path(_core.__file__).parent, "-m", "_core", "-o", said)
    done = run(sys.executable, "-m", "nanobind.stubgen", "-q", *module)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "src/tightship/_core.pyi").read_text() == said.read_text()
