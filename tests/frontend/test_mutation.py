"""Whatever is in a file, it is read or refused with one of our errors."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def read_mutants(kind: str, seed: int, count: int) -> dict[str, int]:
    """Outcomes in a process of its own, whose death is a failure and not the end of the tests."""
    command = [sys.executable, "-m", "tests.frontend.mutation", kind, str(seed), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-200:]}\n{done.stderr[-2000:]}"
    outcomes = ast.literal_eval(done.stdout.splitlines()[-1].strip())
    assert sum(outcomes.values()) == count
    return dict(outcomes)


@pytest.mark.parametrize("kind", ["bytes", "fields"])
def test_mutants_are_read_or_refused(kind: str) -> None:
    outcomes = read_mutants(kind, 0, 700)
    assert outcomes["read"] > 10
    assert outcomes["FormatError"] > 10
    assert outcomes["GraphError"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bytes", "fields"])
def test_many_mutants_are_read_or_refused(kind: str) -> None:
    read_mutants(kind, 10_000, 100_000)
