"""Whatever is in a GGUF file, it is read or refused with one of our errors."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def read_mutants(seed: int, count: int) -> dict[str, int]:
    """Outcomes in a process of its own, whose memory is bounded."""
    command = [sys.executable, "-m", "tests.frontend.gguf.mutation", str(seed), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-200:]}\n{done.stderr[-2000:]}"
    outcomes = ast.literal_eval(done.stdout.splitlines()[-1].strip())
    assert sum(outcomes.values()) == count
    return dict(outcomes)


def test_mutants_are_read_or_refused() -> None:
    outcomes = read_mutants(0, 700)
    assert outcomes["read"] > 10
    assert outcomes["FormatError"] > 100
    assert outcomes["GraphError"] > 10


@pytest.mark.slow
def test_many_mutants_are_read_or_refused() -> None:
    read_mutants(10_000, 10_000)
