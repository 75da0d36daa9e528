"""Cost of NumPy's arrays in blocks of ours, and in its own, alternately.

    python -m benchmarks.resource_numpy [--rounds N] [--no-huge-pages]

Prints nanoseconds of processor time for an array, as one JSON object. `--no-huge-pages` has the
system give the process small pages only, as where transparent huge pages are off.
"""

import argparse
import contextlib
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from benchmarks import record

import tightship.plug
from tightship.resource import main_memory

PR_SET_THP_DISABLE = 41

EMPTY_BYTES = (1 << 10, 1 << 14, 1 << 18, 1 << 20)
FILLED_BYTES = (16 << 20, 64 << 20)
NO_HUGE = ", no huge pages"

Key = tuple[str, str]
Loop = Callable[[], object]


def loops(filled_bytes: tuple[int, ...], empty_bytes: tuple[int, ...]) -> dict[str, Loop]:
    """Time to make and drop an array by each; and the time of writing to one by itself."""
    made: dict[str, Loop] = {
        f"NumPy empty {size >> 10} KiB": lambda size=size: np.empty(size, np.uint8)
        for size in empty_bytes
    }
    for size in filled_bytes:
        left, right = np.ones((2, size // 8))
        made[f"NumPy fill {size >> 20} MiB"] = lambda size=size: np.full(size // 8, 1.0)
        made[f"NumPy fill {size >> 20} MiB in place"] = lambda left=left: left.fill(1.0)
        made[f"NumPy add {size >> 20} MiB"] = lambda left=left, right=right: left + right
    return made


def timed(loop: Loop, count: int) -> float:
    """Nanoseconds of one array."""
    start = time.thread_time_ns()
    for _ in range(count):
        loop()
    return (time.thread_time_ns() - start) / count


def figures(rounds: int, *, has_huge_pages: bool) -> dict[Key, list[float]]:
    """Return the times of each round, by loop and allocator; the first round is dropped."""
    ours = tightship.plug.numpy.use(main_memory())
    suffix = "" if has_huge_pages else NO_HUGE
    kept: dict[Key, list[float]] = {}
    for name, loop in loops(FILLED_BYTES, EMPTY_BYTES if has_huge_pages else ()).items():
        count = 5000 if "empty" in name else 2
        for turn in range(rounds + 1):
            for whose, scope in (("NumPy's own", contextlib.nullcontext()), ("main memory", ours)):
                with scope:
                    ns = timed(loop, count)
                if turn > 0:
                    kept.setdefault((name + suffix, whose), []).append(ns)
    return kept


def figures_of_both(rounds: int) -> dict[Key, list[float]]:
    """Return the figures with huge pages in this process, and without them in another."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.resource_numpy", "--no-huge-pages", "--rounds",
         str(rounds)], cwd=record.ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    small = {tuple(name.split(": ")): ns for name, ns in json.loads(done.stdout).items()}
    return figures(rounds, has_huge_pages=True) | small


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resource_numpy")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-huge-pages", action="store_true")
    options = parser.parse_args()
    if options.no_huge_pages and ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        raise SystemExit("The system does not let a process do without huge pages.")
    kept = figures(options.rounds, has_huge_pages=not options.no_huge_pages)
    print(json.dumps({f"{loop}: {whose}": ns for (loop, whose), ns in kept.items()}))


if __name__ == "__main__":
    main()
