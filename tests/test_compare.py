"""Comparison of two records of `bench_engine`."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import compare


def record(isa: str = "AVX-512", **ratios: tuple[float, float, float]) -> dict[str, Any]:
    """A record of models with the quartiles of their ratios."""
    rows = [
        {"model": model, "threads": 1, "contender": contender, "ratio": ratio,
         "quartiles": [low, high]}
        for model, (low, ratio, high) in ratios.items()
        for contender in ("ort", "tightship")
    ]  # fmt: skip
    return {"isa": isa, "commit": "abc", "rows": rows}


OLD = record(a=(0.9, 1.0, 1.1), b=(0.79, 0.8, 0.81), c=(0.5, 0.5, 0.5), d=(0.89, 0.9, 0.91))
NEW = record(a=(1.0, 1.1, 1.2), b=(0.85, 0.9, 0.95), c=(0.51, 0.51, 0.51), d=(0.69, 0.7, 0.71))


def test_what_grew_beyond_both_spreads_is_slower() -> None:
    """`a` grew within its noise, `c` by too little to tell."""
    found = {change.key[1]: change for change in compare.changes([OLD], [NEW])}
    assert [name for name, each in found.items() if each.is_slower] == ["b"]
    assert [name for name, each in found.items() if each.is_faster] == ["d"]
    assert list(found) == ["b", "a", "c", "d"]


def test_another_instruction_set_is_another_row() -> None:
    assert compare.changes([OLD], [record("AMX", a=(2, 2, 2))]) == []


def test_a_later_record_replaces_an_earlier_one() -> None:
    (change,) = compare.changes([OLD, record(b=(0.9, 0.9, 0.9))], [record(b=(0.9, 0.9, 0.9))])
    assert change.factor == 1


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "old.json", tmp_path / "new.json"]
    for path, each in zip(paths, (OLD, NEW), strict=True):
        path.write_text(json.dumps(each) + "\n")
    return list(map(str, paths))


def test_the_command_tells_and_fails_if_anything_is_slower(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["compare", *files])
    assert compare.main() == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("slower")
    assert "b (tightship, 1, AVX-512): 0.800 [0.790-0.810] -> 0.900 [0.850-0.950]" in told[0]
    assert told[-1] == "1 of 4 slower beyond noise."
    monkeypatch.setattr("sys.argv", ["compare", files[0], files[0]])
    assert compare.main() == 0


def test_a_commit_without_records_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["compare", "0123456789", "abc"])
    with pytest.raises(SystemExit, match="neither a file of records nor a commit"):
        compare.main()
