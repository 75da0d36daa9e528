"""Throughput of two workers of one thread each, beside one worker and two threads.

    python -m benchmarks.bench_workers [--models inception_v1,resnet50] [--rounds 30] [--record]

Ways to run a network take turns in one process, every other round in reverse; outputs of all are
those of one worker bit by bit, or nothing is timed. A turn is an untimed run, then as many as fit
50 ms, and counts by its median. `speed` is the median over rounds of the turn of one worker over
that of the other in the same round, between its quartiles: above 1 is faster. `least` has the same
of the fastest runs of all, which a busy machine disturbs less. `predicted` is the plan's own
figure, by operations.

`workers` has a plan for two workers, `waits` the plan for one with the waits that make it safe, and
`threads` splits each step in two.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from benchmarks.models import stored
from benchmarks.record import append
from tests.zoo.inception_bn import inception_bn

import tightship

MODELS = ("inception_v1", "inception_v2", "inception_bn", "resnet50", "squeezenet")
WORKERS = 2
TURN_S = 0.05
ROUNDS = 30

Run = Callable[[], Mapping[str, Any]]
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a network, by its name in the table."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds of the runs of a turn: their median, and the fastest."""

    median_s: float
    least_s: float


def rows(models: Sequence[str] = MODELS, rounds: int = ROUNDS) -> Iterator[Row]:
    """Figures of networks that branch, and of some that hardly do."""
    with tempfile.TemporaryDirectory() as folder:
        for name in models:
            path, feeds = network(name, Path(folder))
            yield {"model": name, **figures(path, feeds, rounds)}


def network(name: str, folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Write a network, and return its file and inputs."""
    if name != "inception_bn":
        files = stored(name, folder)
        return files.model, dict(np.load(files.feeds))
    case, path = inception_bn(), folder / f"{name}.onnx"
    path.write_bytes(case.model)
    return path, case.feeds


def figures(path: Path, feeds: Mapping[str, Any], rounds: int) -> Row:
    """Return what the plan for two workers takes, and the speed of each way over one worker's."""
    with (
        tightship.load(path, threads=1) as one,
        tightship.load(path, workers=WORKERS) as planned,
        tightship.load(path, threads=WORKERS) as threaded,
    ):
        ways = (
            Way("one", partial(one.run, feeds)),
            Way("workers", partial(planned.run, feeds)),
            Way("waits", partial(one.run, feeds, workers=WORKERS)),
            Way("threads", partial(threaded.run, feeds)),
        )
        check(ways)
        turns = raced(ways, rounds)
        chosen = planned.plan.concurrency
        assert chosen is not None
        serial = chosen.choices[0]
        return {
            "arena_bytes": one.plan.arena_bytes,
            "workers_arena_bytes": planned.plan.arena_bytes,
            "chosen": chosen.plan.name,
            "chains": [serial.longest_chain, chosen.plan.longest_chain],
            "predicted": round(chosen.speedup_of(chosen.plan), 3),
            "ms": {way.name: milliseconds(turns[way.name]) for way in ways},
            "speed": {way.name: speed(turns["one"], turns[way.name]) for way in ways[1:]},
            "least": {way.name: ratio(turns["one"], turns[way.name]) for way in ways[1:]},
        }


def milliseconds(turns: Sequence[Turn]) -> list[float]:
    """Return the median of the turns, and the fastest run."""
    found = median(turn.median_s for turn in turns), min(turn.least_s for turn in turns)
    return [round(1e3 * seconds, 2) for seconds in found]


def check(ways: Sequence[Way]) -> None:
    """Run each way once; workers give the bits of one worker."""
    wanted = {name: value.copy() for name, value in ways[0].run().items()}
    for way in ways[1:]:
        got = way.run()
        if way.name != "threads":  # a sum over threads may end in other bits
            assert all(np.array_equal(got[name], value) for name, value in wanted.items()), way.name


def raced(ways: Sequence[Way], rounds: int) -> dict[str, list[Turn]]:
    """Return the turns of each way."""
    turns: dict[str, list[Turn]] = {way.name: [] for way in ways}
    for index in range(rounds):
        for way in ways if index % 2 == 0 else ways[::-1]:
            turns[way.name].append(turn(way.run))
    return turns


def turn(run: Run) -> Turn:
    """Time the runs that fit a turn."""
    run()
    times: list[float] = []
    started = time.perf_counter()
    while not times or time.perf_counter() - started < TURN_S:
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return Turn(median(times), min(times))


def ratio(one: Sequence[Turn], other: Sequence[Turn]) -> float:
    """Return the ratio of the fastest runs."""
    return round(min(turn.least_s for turn in one) / min(turn.least_s for turn in other), 3)


def speed(one: Sequence[Turn], other: Sequence[Turn]) -> list[float]:
    """Return the quartiles of the ratios of turns, the median in the middle."""
    ratios = [alone.median_s / both.median_s for alone, both in zip(one, other, strict=True)]
    return [round(each, 3) for each in quantiles(ratios, n=4)]


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_workers")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    found = []
    for row in rows(options.models.split(","), options.rounds):
        found.append(row)
        sys.stdout.write(", ".join(f"{key} {value}" for key, value in row.items()) + "\n")
        sys.stdout.flush()
    if options.record:
        append("bench_workers", {"rows": found})


if __name__ == "__main__":
    main(sys.argv[1:])
