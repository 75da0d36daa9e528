"""Prepared loops whose descriptions are wrong, with checksums that are right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tightship
from tests.engine.stored.files import parts_of
from tests.models import filled, gated_scan
from tightship import FormatError


def _first(work: Any) -> Any:
    return work[1][0][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda work: _first(work)["bound"].pop(),
        lambda work: _first(work)["bound"][0].__setitem__(1, 99),
        lambda work: _first(work)["slots"][0].__setitem__(1, 1 << 30),
        lambda work: work[1][1][0][0].__setitem__(4, 1 << 30),
        lambda work: work[1][1][0][0].__setitem__(3, 5),
        lambda work: work[1][1][1][0].__setitem__(5, -4),
        lambda work: work[1][1][1][0].__setitem__(6, 1 << 20),
        lambda work: work[1][1][2][0].__setitem__(6, 1 << 20),
        lambda work: work[1][1].__setitem__(4, 7),
        lambda work: work[1][1].__setitem__(4, -1),
        lambda work: work[1][1].__setitem__(10, 1 << 30),
        lambda work: work[1][1].__setitem__(5, 99),
        lambda work: work[1][0].append(work[1][0][0]),
        lambda work: work[1][0].clear(),
    ],
)
def test_a_prepared_loop_that_would_leave_its_bytes_is_refused(
    change: Callable[[Any], object], tmp_path: Path
) -> None:
    path = tmp_path / "gated.tship"
    tightship.prepare(gated_scan().SerializeToString(), path)
    parts = parts_of(path.read_bytes())
    found = [each for each in _works(parts.text) if each[0] == "control"]
    change(found[0])
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError), tightship.load(path) as model:
        model.run({"h": filled(4, 16), "x": filled(6, 4, 16)})


def _works(value: Any) -> list[Any]:
    """Return every list of a description that begins with the kind of a step's work."""
    if isinstance(value, dict):
        return [each for member in value.values() for each in _works(member)]
    if not isinstance(value, list):
        return []
    own = [value] if len(value) == 3 and value[0] == "control" else []
    return own + [each for member in value for each in _works(member)]
