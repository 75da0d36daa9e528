"""Run the tests that the default suite leaves out, to their end: before every release.

    python -m benchmarks.long_tests --record
    python -m benchmarks.long_tests squeezed properties --hours 0.25

`sanitizers` compiles the core with AddressSanitizer, UndefinedBehaviorSanitizer and
ThreadSanitizer and runs stress programs and tests on it; `squeezed` compares 2,000 random graphs
with their squeezed forms; `slow` is every other test marked slow; `properties` repeats all property
tests with fresh random examples for an hour; `gpu` measures on a CUDA device, where there is one.
Run from the repository's root after `pip install '.[test]'`. Exits with 1 if a list failed.
"""

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import record

from tightship.view.table import Column, table

SQUEEZED = "tests/cost/test_squeezed_random.py"
SANITIZERS = "tests/native"
SEEDS = 1 << 32
"""Seeds that Hypothesis is given are below this."""
NO_TESTS = 5
"""Exit status of pytest when it has collected no test."""
COLUMNS = (
    Column("list"),
    *(Column(title, number=True) for title in ("passed", "failed", "skipped", "minutes")),
    Column("note"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of one list of tests.

    Attributes:
        failures: Identifiers of the tests that failed.
        seeds: Seeds given to Hypothesis, one for each round.
        note: Why nothing ran, or how much did.
    """

    name: str
    passed: int = 0
    skipped: int = 0
    minutes: float = 0.0
    failures: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    note: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether tests ran and none failed, or a note says why none could run."""
        return not self.failures and bool(self.passed or self.note)


def run_pytest(name: str, arguments: Sequence[str], note: str = "") -> Outcome:
    """Run pytest with `arguments` and count its results; its progress goes to standard error."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *arguments, f"--junitxml={report}"]
        status = subprocess.run(command, cwd=record.ROOT, stdout=sys.stderr, check=False).returncode
        minutes = round((time.monotonic() - begin) / 60, 1)
        if not report.exists() or status == NO_TESTS:
            return Outcome(name, minutes=minutes, failures=(f"pytest ended with {status}",))
        passed, skipped, failures = counts(ET.parse(report).getroot())
    if status and not failures:
        failures = (f"pytest ended with {status}",)
    return Outcome(name, passed, skipped, minutes, failures, note=note)


def counts(report: ET.Element) -> tuple[int, int, tuple[str, ...]]:
    """Passed and skipped tests of a JUnit report, and the identifiers of those that failed."""
    cases = list(report.iter("testcase"))
    failed = [case for case in cases if {"failure", "error"} & {child.tag for child in case}]
    skipped = sum(case.find("skipped") is not None for case in cases)
    names = tuple(sorted({f"{case.get('classname')}::{case.get('name')}" for case in failed}))
    return len(cases) - len(failed) - skipped, skipped, names


def properties(hours: float) -> Outcome:
    """Repeat all property tests, each round with a seed of its own, until the time is over."""
    begin = time.monotonic()
    total = Outcome("properties")
    while not total.seeds or time.monotonic() - begin < hours * 3600:
        seed = secrets.randbelow(SEEDS)
        selected = ["-m", "hypothesis", "--hypothesis-profile=searching"]
        one = run_pytest("properties", [*selected, f"--hypothesis-seed={seed}", "tests"])
        total = Outcome(
            "properties",
            total.passed + one.passed,
            total.skipped + one.skipped,
            round((time.monotonic() - begin) / 60, 1),
            (*total.failures, *(f"{each} (seed {seed})" for each in one.failures)),
            (*total.seeds, seed),
            f"{len(total.seeds) + 1} rounds",
        )
    return total


def gpu() -> Outcome:
    """Measure on the CUDA device; a note says what is missing where there is none."""
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.bench_gpu"],
        cwd=record.ROOT, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    minutes = round((time.monotonic() - begin) / 60, 1)
    if done.returncode == 0:
        return Outcome("gpu", passed=1, minutes=minutes, note="recorded by itself")
    lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
    if Path("/dev/nvidiactl").exists():
        return Outcome("gpu", minutes=minutes, failures=(lines[-1],))
    return Outcome("gpu", minutes=minutes, note=f"not run: {lines[-1]}")


def lists(*, hours: float) -> Mapping[str, Callable[[], Outcome]]:
    """Every list by its name, in the order in which they run."""
    elsewhere = [f"--ignore={SANITIZERS}", f"--ignore={SQUEEZED}"]
    return {
        "sanitizers": lambda: run_pytest("sanitizers", ["-m", "slow", SANITIZERS]),
        "squeezed": lambda: run_pytest("squeezed", ["-m", "slow", SQUEEZED]),
        "slow": lambda: run_pytest("slow", ["-m", "slow", *elsewhere, "tests"]),
        "properties": lambda: properties(hours),
        "gpu": gpu,
    }


def printed(outcomes: Sequence[Outcome]) -> str:
    """Format a table of the outcomes, and below it what failed."""
    rows = [
        (each.name, str(each.passed), str(len(each.failures)), str(each.skipped),
         f"{each.minutes:.1f}", each.note)
        for each in outcomes
    ]  # fmt: skip
    failures = [f"failed: {failure}" for each in outcomes for failure in each.failures]
    return "\n".join([*table(COLUMNS, rows), *failures])


def main() -> None:
    """Run the lists that are asked for, print and record how each ended."""
    every = lists(hours=1.0)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lists", nargs="*", metavar="LIST", help=f"of {', '.join(every)} (all)")
    parser.add_argument("--hours", type=float, default=1.0, help="for `properties` (1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="keep the outcomes")
    options = parser.parse_args()
    unknown = sorted(set(options.lists) - set(every))
    if unknown:
        parser.error(f"unknown list `{unknown[0]}`; choose from {', '.join(every)}")
    chosen = [
        run for name, run in lists(hours=options.hours).items() if name in (options.lists or every)
    ]
    outcomes: list[Outcome] = []
    line = record.begin("long_tests") if options.record else None
    for run in chosen:
        outcomes.append(run())
        if line is not None:
            line.write({"lists": [asdict(each) for each in outcomes]})
    found = [asdict(each) for each in outcomes]
    print(json.dumps(found) if options.json else printed(outcomes))
    sys.exit(not all(each.is_clean for each in outcomes))


if __name__ == "__main__":
    main()
