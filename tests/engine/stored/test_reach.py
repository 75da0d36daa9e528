"""Reaches of kernels: they cover every byte that kernels touch, and fit the operands."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.zoo.catalogue import SMALL

PARTS = 24
"""Number of parts of ONNX's node suite."""


def run_guarded(part: int) -> int:
    """Return how many kernels of a part ran within their reach; raise if one did not."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.stored.guarded", str(part), str(PARTS)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    return int(done.stdout)


def test_kernels_of_some_nodes_stay_within_what_they_reach() -> None:
    assert run_guarded(0) > 50


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, PARTS))
def test_kernels_of_all_nodes_stay_within_what_they_reach(part: int) -> None:
    assert run_guarded(part) > 0


@pytest.mark.parametrize(
    "name",
    [name if name == "gpt2" else pytest.param(name, marks=pytest.mark.slow) for name in SMALL],
)
def test_a_small_network_is_within_its_bounds_and_gives_the_same_bits(
    name: str, tmp_path: Path
) -> None:
    case, path = SMALL[name](1), tmp_path / "model.tship"
    shapes = {name: array.shape for name, array in case.feeds.items()}
    tightship.prepare(case.model, path, shapes=shapes)
    with tightship.load(case.model, shapes=shapes) as plain:
        wanted = plain.run(case.feeds)
    with tightship.load(path) as model:
        found = model.run(case.feeds)
    for output, array in wanted.items():
        np.testing.assert_array_equal(found[output], array)
