"""Linters, type checker and formatters, over the whole repository."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tightship import _core

ROOT = Path(__file__).parents[1]


def tool(name: str) -> str:
    """A tool of the test extra, in this environment before any other."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; `pip install '.[test]'` brings it")
    return found


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_finds_nothing() -> None:
    done = run(tool("ruff"), "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


def test_python_is_formatted() -> None:
    done = run(tool("ruff"), "format", "--no-cache", "--check", ".")
    assert done.returncode == 0, done.stdout


def test_every_type_is_right() -> None:
    done = run(tool("mypy"), "--strict")
    assert done.returncode == 0, done.stdout


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
