"""Memory of a process whose libraries were just written, as those of a new container are.

Linux keeps what is written in large pieces in large folios, and maps those whole.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_contract import SCRIPT
from tests.zoo import light

PACKAGES = ("tightship", "numpy", "numpy.libs", "onnx", "ml_dtypes", "google")
WRITE_BYTES = [1 << 20, 4 << 20]
"""Bytes that pip writes at once; more than the largest folio."""
PYTHONS = ("python3.11", "python3.12", "python3.13")


def write_anew(folder: Path, write_bytes: int, packages: tuple[str, ...]) -> None:
    """Copy packages of this environment, `write_bytes` at once."""

    def copy(source: str, target: str) -> None:
        with open(source, "rb") as old, open(target, "wb", buffering=0) as new:
            while piece := old.read(write_bytes):
                new.write(piece)

    left_out = shutil.ignore_patterns("__pycache__", "tests", "test", "include", "*.pyi")
    for name in packages:
        found = find_spec(name.removesuffix(".libs"))
        if found is None or not found.submodule_search_locations:
            continue
        source = Path(next(iter(found.submodule_search_locations))).with_name(name)
        if source.is_dir():
            shutil.copytree(source, folder / name, copy_function=copy, ignore=left_out)


def measured(python: str, folder: Path, model: str, *, is_here: bool) -> dict[str, int]:
    """Return the growth of a process of `python` that finds its packages in `folder` first.

    It plans the model itself if `is_here`, or else has another process plan it.
    """
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    bytecode = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PLANNER": python}
    arguments = json.dumps([str(light.path_of(model)), None, None, [], 1, is_here])
    command = [python, "-c", SCRIPT, arguments, "16GiB"]
    for _ in range(2):  # the first compiles modules
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": path} | bytecode,
        )  # fmt: skip
        if done.returncode != 0 and python != sys.executable:
            pytest.skip(f"{python} cannot run it: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
    seen: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.parametrize("write_bytes", WRITE_BYTES)
def test_a_process_stays_inside_its_plan_right_after_installing(
    tmp_path: Path, write_bytes: int
) -> None:
    write_anew(tmp_path, write_bytes, PACKAGES)
    for is_here in (True, False):
        seen = measured(sys.executable, tmp_path, "squeezenet", is_here=is_here)
        assert seen["gained"] <= seen["planned"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PYTHONS)
def test_every_python_stays_inside_its_plan_right_after_installing(
    tmp_path: Path, name: str
) -> None:
    python = shutil.which(name)
    if python is None:
        pytest.skip(f"there is no {name} on PATH")
    write_anew(tmp_path, WRITE_BYTES[-1], PACKAGES[:1])
    for model in ("squeezenet", "resnet50", "shufflenet"):
        for is_here in (True, False):
            seen = measured(python, tmp_path, model, is_here=is_here)
            assert seen["gained"] <= seen["planned"], (model, is_here)
