"""A contender in a process of its own, which waits for its turn.

The process loads its model once and then obeys lines: `SAVE path` runs once and writes the
outputs, `GO n` runs once untimed (others have used the caches meanwhile), then `n` times, and
answers with the nanoseconds of each run, by the clock and of processor time.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.contender import load
from benchmarks.models import Stored, named
from benchmarks.record import ROOT


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of one turn, in nanoseconds."""

    wall_ns: float
    cpu_ns: float
    least_ns: int


class Worker:
    """The other end of a contender's pipe."""

    def __init__(self, contender: str, stored: Stored, threads: int, source: str = "") -> None:
        environment = dict(os.environ)
        if source:
            environment["PYTHONPATH"] = source
        self.contender = contender
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.turn", contender, str(stored.model),
             str(stored.feeds), str(threads), source],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
        )  # fmt: skip
        self.versions: dict[str, str] = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            message = f"`{self.contender}` ended with exit code {self._process.wait()}."
            raise ChildProcessError(message)
        return json.loads(line)

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def save(self, path: Path) -> None:
        """Have it write its outputs, as an `npz` file."""
        self._ask(f"SAVE {path}")

    def turn(self, count: int) -> Timing:
        """Have it run `count` times."""
        walls, cpus = self._ask(f"GO {count}")
        return Timing(median(walls), median(cpus), min(walls))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def neighbour(processor: int | None) -> Iterator[None]:
    """A process that keeps `processor` busy meanwhile; none where that is `None`."""
    if processor is None:
        yield
        return
    code = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            yield
        finally:
            process.kill()


def check_source(source: str) -> None:
    """End the process where it imported Tightship from elsewhere than a contender's tree.

    An editable install is found before any folder of `PYTHONPATH`.
    """
    import tightship

    found = Path(tightship.__file__)
    if not found.is_relative_to(Path(source).resolve()):
        sys.exit(
            f"`tightship@{source}` is hidden by `{found.parent}`. Run the benchmark in an "
            "environment without an editable install of tightship."
        )


def main(contender: str, model: str, feeds: str, threads: str, source: str) -> None:
    """Load, then obey until the pipe closes."""
    if source:
        check_source(source)
    with np.load(feeds) as arrays:
        loaded = load(contender, Path(model), dict(arrays), int(threads))
    for _ in range(2):
        loaded.run()
    print(json.dumps(loaded.versions), flush=True)
    for line in sys.stdin:
        order, argument = line.split(maxsplit=1)
        if order == "SAVE":
            np.savez(argument.strip(), **named(loaded.run()))
            print("null", flush=True)
            continue
        loaded.run()
        walls, cpus = [], []
        for _ in range(int(argument)):
            wall, cpu = time.perf_counter_ns(), time.process_time_ns()
            loaded.run()
            cpus.append(time.process_time_ns() - cpu)
            walls.append(time.perf_counter_ns() - wall)
        print(json.dumps((walls, cpus)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
