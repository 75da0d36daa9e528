"""Installs a wheel as a user does, and runs it and its tests."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from release.commands import ReleaseError, announce, run

SMOKE = (
    "tests/test_contract.py",
    "tests/test_public_api.py",
    "tests/native/test_limited_api.py",
    "tests/engine/test_openmp.py",
    "tests/engine/test_bundle_onednn.py",
)
"""Tests of all that a build can break: memory, names, the ABI, threads, the bundled library."""
LARGE = (*SMOKE, "tests/driver", "tests/engine", "tests/resource", "tests/scenarios")


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of installing and testing a wheel.

    Attributes:
        wheel: Name of the file.
        python: The version, such as `3.12`.
        seconds: Time of the installation, downloads included.
        processor_seconds: Time of processors in it, which other work on the machine changes little.
        tests: The last line of pytest.
    """

    wheel: str
    python: str
    seconds: float
    processor_seconds: float
    tests: str


class Installation:
    """A new virtual environment with a wheel in it."""

    def __init__(self, interpreter: Path, folder: Path) -> None:
        """Make the environment; nothing is installed yet."""
        self._folder = folder
        run([interpreter, "-m", "venv", folder / "venv"], folder.parent)
        self._programs = folder / "venv" / "bin"
        (folder / "nothing").mkdir()

    def install(self, wheel: Path) -> tuple[float, float]:
        """Install a wheel without any program on the path; return its seconds, and processors'."""
        start, before = time.monotonic(), processor_seconds()
        self._alone("python", "-m", "pip", "install", str(wheel))
        return time.monotonic() - start, processor_seconds() - before

    def use(self) -> None:
        """Plan and run the model that comes with onnx, without any program on the path.

        Raises:
            ReleaseError: A command failed, or did not print its figures.
        """
        for command, expected in (("plan", "peak memory of"), ("run", "median of")):
            if expected not in self._alone("tightship", command):
                raise ReleaseError(f"`tightship {command}` printed no `{expected}`.")

    def test(self, wheel: Path, tree: Path, tests: tuple[str, ...]) -> str:
        """Run tests of a tree on the installed package, and return the last line of pytest."""
        python = self._programs / "python"
        run([python, "-m", "pip", "install", f"{wheel}[test]"], self._folder)
        pytest = [python, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", *tests]
        return run(pytest, tree).strip().splitlines()[-1]

    def _alone(self, program: str, *arguments: str) -> str:
        alone = {"PATH": str(self._folder / "nothing")}
        return run([self._programs / program, *arguments], self._folder, alone)


def tried(
    wheel: Path, tree: Path, interpreter: Path, version: str, work: Path, tests: tuple[str, ...]
) -> Trial:
    """Install a wheel, use it, and run some of its tests.

    Raises:
        ReleaseError: Any of that failed.
    """
    announce(f"install {wheel.name} on Python {version}, without a compiler")
    work.mkdir()
    installation = Installation(interpreter, work)
    seconds = installation.install(wheel)
    installation.use()
    announce(f"test it: {' '.join(tests)}")
    return Trial(wheel.name, version, *seconds, installation.test(wheel, tree, tests))


def processor_seconds() -> float:
    """Return the time of processors that all commands so far took."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size(path: Path) -> str:
    """Say the size of a file, in MB as package indexes count."""
    return f"{os.path.getsize(path) / 1e6:.1f} MB"
