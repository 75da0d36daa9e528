"""A typed program of public names passes `mypy --strict` with the installed package."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tightship

PROGRAM = Path(__file__).parent / "typed_program.py"
WRONG = """
import tightship

plan: int = tightship.plan("model.onnx")
tightship.load("model.onnx", max_memory=1.5)
tightship.planner.solve
tightship.resource.LimitingResource(tightship.resource.HostResource(), "1MiB").trim("all")
"""


def checked(folder: Path) -> str:
    """Output of the checker, in a folder that knows no source tree of the package."""
    mypy = shutil.which("mypy", path=sysconfig.get_path("scripts")) or shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not installed; `pip install '.[test]'` brings it")
    command = [mypy, "--strict", "--python-executable", sys.executable, "program.py"]
    command += ["--follow-imports", "silent", "--ignore-missing-imports"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


def test_a_program_of_public_names_is_fully_typed(tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path / "program.py")
    assert checked(tmp_path) == "Success: no issues found in 1 source file\n"
    assert (Path(tightship.__file__).parent / "py.typed").is_file()


def test_wrong_types_are_seen(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WRONG)
    said = checked(tmp_path)
    assert [f"program.py:{line}:" in said for line in (4, 5, 6, 7)] == [True] * 4
