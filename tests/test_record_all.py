"""The command that records every benchmark anew, and that none is left out of it."""

import importlib
import re
from pathlib import Path

import pytest
from benchmarks import record_all
from benchmarks.record_all import BENCHMARKS, PEERS

README = Path(record_all.__file__).with_name("README.md")
APART = {
    "baselines.simulated", "compare", "gpu.bench_gpu", "load_parts", "long_tests", "readme",
    "record_all", "soak_serve", "step_overhead", "step_times",
}  # fmt: skip
"""Commands that record nothing, take hours or need a GPU."""


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have run; those of `bench_plan` fail."""
    found = []

    def run(command):
        found.append(command)
        return 1.5, int("benchmarks.bench_plan" in command)

    monkeypatch.setattr(record_all, "_run", run)
    return found


def test_every_benchmark_of_the_list_is_recorded():
    said = set(re.findall(r"^\| `python -m benchmarks\.([\w.]+)", README.read_text(), re.MULTILINE))
    assert said - APART == {each.module for each in BENCHMARKS} - {"driver_oip"}


@pytest.mark.parametrize("module", sorted({each.module for each in BENCHMARKS}))
def test_each_is_a_module_of_this_folder(module):
    assert importlib.util.find_spec(f"benchmarks.{module}") is not None


def test_those_without_their_peer_are_left_out_by_name(ran, capsys):
    assert record_all.main(["bench_reuse", "bench_serve"]) == 0
    assert ran == [["-m", "benchmarks.bench_serve"]]
    assert "left out: give --peer data=" in capsys.readouterr().out
    assert record_all.main(["bench_reuse", "--peer", "data=/problems"]) == 0
    assert ran[1:] == [["-m", "benchmarks.bench_reuse", "/problems"]]


def test_one_that_fails_ends_no_other(ran, capsys):
    assert record_all.main(["bench_plan", "bench_serve", "bench_share", "--folder", "models"]) == 1
    assert len(ran) == 3
    assert ["-m", "benchmarks.bench_share", "--folder", "models"] in ran
    assert "failed with status 1" in capsys.readouterr().out


def test_a_list_runs_nothing(ran, capsys):
    given = [part for name in PEERS for part in ("--peer", f"{name}=there")]
    assert record_all.main(["--list", *given]) == 0
    assert ran == []
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BENCHMARKS)
    assert not any("left out" in line or "{" in line for line in lines)


@pytest.mark.parametrize("given", [["bench_nothing"], ["--peer", "data"], ["--peer", "other=x"]])
def test_unknown_names_are_refused(given, ran, capsys):
    with pytest.raises(SystemExit):
        record_all.main(given)
    assert ran == []
    assert "choose from" in (said := capsys.readouterr().err) or "NAME=PLACE" in said
