"""Files with wrong values and right checksums are refused or run; they never end the process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tightship
from tests.engine.stored.files import decoder_file, dense_file
from tests.models import conv_net, gated_scan


def ends(path: Path, count: int, seed: int) -> dict[str, int]:
    """Count how children ended that loaded and ran mutants of a file."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.stored.fuzz", path, str(count), str(seed)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_wrong_values_are_refused_or_harmless(tmp_path: Path) -> None:
    assert ends(dense_file(tmp_path), 60, 0).keys() == {"ran", "refused"}


def test_wrong_values_of_loops_are_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "gated.tship"
    tightship.prepare(gated_scan().SerializeToString(), path)
    assert ends(path, 60, 0).keys() == {"ran", "refused"}


def test_wrong_values_of_sessions_are_refused_or_harmless(tmp_path: Path) -> None:
    assert ends(decoder_file(tmp_path, (16,)), 30, 0).keys() == {"ran", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_wrong_values_are_refused_or_harmless(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "conv.tship"
    tightship.prepare(conv_net().SerializeToString(), path)
    loops = tmp_path / "gated.tship"
    tightship.prepare(gated_scan().SerializeToString(), loops)
    for each in (dense_file(tmp_path), path, loops, decoder_file(tmp_path, (16,))):
        assert ends(each, 400, seed).keys() == {"ran", "refused"}
