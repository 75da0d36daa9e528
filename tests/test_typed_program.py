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


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Output of the checker, in a folder that knows no source tree of the package."""
    mypy = shutil.which("mypy", path=sysconfig.get_path("scripts")) or shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not installed; `pip install '.[test]'` brings it")
    folder = tmp_path_factory.mktemp("programs")
    shutil.copy(PROGRAM, folder / "program.py")
    (folder / "wrong.py").write_text(WRONG)
    command = [mypy, "--strict", "--python-executable", sys.executable, "program.py", "wrong.py"]
    command += ["--follow-imports", "silent", "--ignore-missing-imports"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("in 1 file (checked 2 source files)\n"), done.stdout + done.stderr
    return done.stdout


def test_a_program_of_public_names_is_fully_typed(said: str) -> None:
    assert "program.py" not in said
    assert (Path(tightship.__file__).parent / "py.typed").is_file()


def test_wrong_types_are_seen(said: str) -> None:
    assert [f"wrong.py:{line}:" in said for line in (4, 5, 6, 7)] == [True] * 4
