"""Virtual resources: what they hold of recorded traces, and what a block costs.

    python -m benchmarks.bench_virtual TRACE... [--rounds N] [--growing] [--record] [--json]

A trace is taken as it is, and with all sizes times 32. Memory is not written to while a trace is
played. Compiles `virtual_loops.cpp` with the core's sources. What is called a simulation is one,
of what another allocator would hold; its time is not taken. `--held` is what resources hold only,
which comes out the same every time but for the rows of two threads. `--growing` compares the
default, pages that grow, with pages of one size.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Barrier, Thread

import numpy as np
from benchmarks import record
from benchmarks.baselines.simulated import SIMULATED, Columns, Growing, divided, peak_held_bytes
from benchmarks.bench_resource import FLAGS, HERE, NATIVE
from benchmarks.growing_pages import RANDOM, compared, random_columns, written
from benchmarks.two_streams import two_streams

from tightship import _core
from tightship.plug.hints import iteration
from tightship.resource import StatisticsResource
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    HostDevice,
    PlannedResource,
    StealingVirtualResource,
    VirtualResource,
)
from tightship.trace.events import Trace, read_trace
from tightship.trace.replay import trace_columns

FACTORS = (32, 1)
GROWING_FACTORS = (64, 32, 16, 8, 4, 2, 1)
SEEDS = 3
KIB, MIB = 1 << 10, 1 << 20
PAGES = (2 * MIB, 64 * KIB, 16 * KIB)
CHUNKS = tuple(size * MIB for size in (2, 4, 8, 16, 20, 32, 64))
NEVER = 1e9
TIMES = 20


@dataclass(frozen=True, slots=True)
class Target:
    """A figure and what it should be at most."""

    name: str
    value: float
    limit: float

    @property
    def verdict(self) -> str:
        """Empty where it is met."""
        return "" if self.value <= self.limit else "  missed"


def stealing(page_bytes: int, patience_s: float = 1) -> StealingVirtualResource:
    """Make a resource on private pages that gives nothing back of its own accord."""
    return StealingVirtualResource(
        HostDevice(),
        page_bytes=page_bytes,
        idle_s=NEVER,
        patience_s=patience_s,
    )


def held(resource: VirtualResource, live_bytes: int) -> dict[str, float]:
    """Return the figures of a resource after a trace."""
    now = resource.virtual_statistics()
    return {
        "peak_live_bytes": live_bytes,
        "ratio": round(now.peak_physical_bytes / live_bytes, 4),
        "remap_share": round(now.remap_count / now.allocation_count, 4),
        "exact_share": round(now.exact_count / now.allocation_count, 4),
        "moved_count": now.moved_count,
        "created_count": now.created_count,
    }


def alone(resource: VirtualResource, columns: Columns) -> dict[str, float]:
    """One thread. Time is the thread's, moving pages included, but none is written to."""
    played = _core.replay(resource, *columns, part_count=0)
    assert played.refused_count == 0
    figures = held(resource, played.peak_live_bytes)
    return {**figures, "ns_per_operation": round(played.duration_ns / len(columns[0]), 1)}


def together(resource: VirtualResource, columns: Columns) -> dict[str, float]:
    """Two threads, each with a copy of the trace, again and again.

    What was live is counted as the resource rounds it, within its lock: from outside, a block
    would be counted later than its memory is there.
    """
    barrier = Barrier(2)

    def play() -> None:
        barrier.wait()
        _core.replay(resource, *columns, part_count=0)

    threads = [Thread(target=play) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return held(resource, resource.virtual_statistics().peak_allocated_bytes)


def repeated(columns: Columns, times: int = TIMES) -> Columns:
    """The trace so often, with nothing live in between."""
    slots, sizes = columns
    live: dict[int, None] = {}
    for slot in slots.tolist():
        if slot >= 0:
            live[slot] = None
        else:
            del live[~slot]
    left = ~np.array([*live], np.int64)
    return (
        np.tile(np.concatenate([slots, left]), times),
        np.tile(np.concatenate([sizes, np.zeros_like(left)]), times),
    )


def scaled(columns: Columns, factor: int) -> Columns:
    """Sizes times `factor`."""
    return columns[0], columns[1] * factor


def trace_figures(columns: Columns) -> dict[str, dict[str, float]]:
    """Every policy and page, over what is live; by `POLICY SIZE, xFACTOR`."""
    figures: dict[str, dict[str, float]] = {}
    for factor in FACTORS:
        events = scaled(columns, factor)
        for page_bytes in PAGES:
            name = f"stealing {page_bytes // KIB} KiB, x{factor}"
            figures[name] = alone(stealing(page_bytes), events)
            figures[f"{name}, 2 threads"] = together(stealing(page_bytes), repeated(events))
        for chunk_bytes in CHUNKS:
            seed = ChunkedVirtualResource(HostDevice(), chunk_bytes)
            figures[f"seed {chunk_bytes // MIB} MiB, x{factor}"] = alone(seed, events)
        for name, row in stream_figures(events).items():
            figures[f"{name}, x{factor}"] = row
        for name, row in simulated(events).items():
            figures[f"{name} (simulation), x{factor}"] = row
    return figures


def stream_figures(columns: Columns) -> dict[str, dict[str, float]]:
    """Two streams, with pages of both sizes; where nothing waits for a fence, too."""
    twice = repeated(columns, 2)
    return {
        f"stealing {page_bytes // KIB} KiB, 2 streams{words}": two_streams(
            stealing(page_bytes, patience_s=patience), twice
        )
        for page_bytes in PAGES[:2]
        for words, patience in (("", 1), (" that are never waited for", 0))
    }


def simulated(columns: Columns) -> dict[str, dict[str, float]]:
    """Return the figures of simulations, of which only held bytes count."""
    held_bytes = {name: peak_held_bytes(make(), columns) for name, make in SIMULATED.items()}
    small, large = divided(columns, MIB)
    chunks = ChunkedVirtualResource(HostDevice(), 2 * MIB)
    _core.replay(chunks, *large, part_count=0)
    front_bytes = peak_held_bytes(Growing(), small)
    held_bytes["seed 2 MiB and a front for 1 MiB"] = (
        front_bytes + chunks.virtual_statistics().peak_physical_bytes
    )
    any_resource = ChunkedVirtualResource(HostDevice(), 2 * MIB)
    live_bytes = _core.replay(any_resource, *columns, part_count=0).peak_live_bytes
    return {
        name: {"peak_live_bytes": live_bytes, "ratio": round(size_bytes / live_bytes, 4)}
        for name, size_bytes in held_bytes.items()
    }


def growing_figures(
    traces: Mapping[str, Columns], rounds: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Compare growing pages with pages of 2 MiB, on traces and on random programs."""
    programs = {
        f"{name}, x{factor}": scaled(columns, factor)
        for name, columns in traces.items()
        for factor in GROWING_FACTORS
    }
    for kind in RANDOM:
        for seed in range(SEEDS):
            least, largest, most = kind
            name = f"random 2^{least}..2^{largest}, {most} blocks, seed {seed}"
            programs[name] = random_columns(seed, *kind)
    figures = {}
    for name, columns in programs.items():
        figures[name] = compared(columns, rounds)
        for contender, seconds in written(columns).items():
            figures[name][contender]["written_s"] = seconds
    return figures


def show_growing(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Print a line for each program."""
    print(f"{'growing pages over pages of 2 MiB':<44}{'live MiB':>9}{'2 MiB holds':>12}"
          f"{'growing':>9}{'first':>7}{'later':>7}{'written':>9}")  # fmt: skip
    for name, row in figures.items():
        fixed, grown = row["2 MiB"], row["growing"]
        first = grown["first_ns"] / fixed["first_ns"]
        later = grown["later_ns"] / fixed["later_ns"]
        both_s = [each.get("written_s") for each in (grown, fixed)]
        over = f"{both_s[0] / both_s[1]:9.2f}" if all(both_s) else ""
        print(
            f"{name:<44}{fixed['peak_live_bytes'] / MIB:>9.1f}{fixed['ratio']:>12.3f}"
            f"{grown['ratio']:>9.3f}{first:>7.2f}{later:>7.2f}{over}"
        )


def steps(trace: Trace) -> Iterator[tuple[int, int]]:
    """Block and size, 0 for one that goes; at the end what is left goes."""
    live: dict[int, None] = {}
    for event in trace.events:
        if event.is_allocation:
            live[event.number] = None
        else:
            del live[event.number]
        yield event.number, event.size_bytes
    yield from ((number, 0) for number in live)


def hinted(trace: Trace, times: int = 4) -> dict[str, float]:
    """The trace as an iteration, again and again, at planned offsets over page stealing."""
    upstream = stealing(64 * KIB)
    counted = StatisticsResource(upstream)
    planned = PlannedResource(counted)
    events = list(steps(trace))
    after = []
    for _ in range(times):
        blocks: dict[int, tuple[int, int]] = {}
        with iteration(planned):
            for number, size_bytes in events:
                if size_bytes:
                    blocks[number] = planned.allocate(size_bytes), size_bytes
                else:
                    planned.deallocate(*blocks.pop(number))
        upstream.trim()
        after.append(upstream.virtual_statistics().physical_bytes)
    surplus = counted.counters().current_bytes - planned.capacity_bytes
    return {
        "plan_peak_bytes": planned.capacity_bytes,
        "beside_plan_bytes": surplus,
        "surprise_count": planned.surprise_count,
        "growth_bytes": max(after[1:]) - after[1],
        "physical_over_plan": round(after[-1] / planned.capacity_bytes, 4),
    }


def sources() -> list[Path]:
    """List the sources of the program of loops."""
    below = NATIVE / "src" / "resource"
    rooms = (NATIVE / "src" / "os", below / "virtual")
    alone = [below / f"{name}.cpp" for name in ("fork_guard", "memory_resource", "pages")]
    found = [each for room in rooms for each in room.glob("*.cpp")]
    return [HERE / "virtual_loops.cpp", *found, *alone]


def compiled(folder: Path) -> Path:
    """The program of loops."""
    program = folder / "virtual_loops"
    subprocess.run(
        ["g++", *FLAGS, f"-I{NATIVE / 'include'}", *sources(), "-o", program, "-lpthread"],
        check=True,
    )
    return program


def loop_figures(rounds: int) -> dict[str, float]:
    """Medians in nanoseconds, by `LOOP: CONTENDER`."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [compiled(Path(folder)), str(rounds)], capture_output=True, text=True, check=True
        )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {f"{line['loop']}: {line['contender']}": round(median(line["ns"]), 1) for line in lines}


def targets(
    loops: Mapping[str, float],
    traces: Mapping[str, Mapping[str, Mapping[str, float]]],
    hints: Mapping[str, Mapping[str, float]],
) -> Iterator[Target]:
    """Yield the targets, each with the figure that is held against it."""
    if loops:
        yield Target("exact allocate and deallocate, ns", loops["exact: stealing"], 40)
        stitch = loops["stitch 64 MiB: host"] / loops["stitch 64 MiB: memfd, populated"]
        yield Target("stitch 64 MiB over memfd, populated", stitch, 1 / 10)
        yield Target("mix over touching", loops["mix: stealing"] / loops["mix: touching"], 1.2)
    for name, figures in traces.items():
        wanted = {
            "stealing 2048 KiB, x32": 1.03,
            "stealing 2048 KiB, x32, 2 threads": 1.10,
            "stealing 2048 KiB, 2 streams, x32": 1.10,
            "stealing 64 KiB, x1": 1.10 if "train" in name else 1.20,
        }
        for key, limit in wanted.items():
            yield Target(f"{name}: {key}", figures[key]["ratio"], limit)
            yield Target(f"{name}: {key}, remap share", figures[key]["remap_share"], 0.02)
    for name, row in hints.items():
        yield Target(f"{name}, planned: bytes beside the plan", row["beside_plan_bytes"], 0)
        yield Target(f"{name}, planned: growth after the first", row["growth_bytes"], 0)


def show_all(
    loops: Mapping[str, float],
    traces: Mapping[str, Mapping[str, Mapping[str, float]]],
    hints: Mapping[str, Mapping[str, float]],
) -> None:
    """Tables."""
    for loop, ns in loops.items():
        print(f"{loop:<44}{ns:>14,.1f} ns")
    for name, figures in traces.items():
        print(f"\n{name:<58}{'of live':>9}{'remaps':>8}{'exact':>8}{'ns/op':>9}")
        for key, row in figures.items():
            rest = [
                f"{row[field]:>{width}{form}}" if field in row else " " * width
                for field, width, form in (
                    ("remap_share", 8, ".2%"),
                    ("exact_share", 8, ".0%"),
                    ("ns_per_operation", 9, ",.0f"),
                )
            ]
            print(f"{key:<58}{row['ratio']:>9.4f}{''.join(rest)}")
    for name, row in hints.items():
        print(f"\n{name}, planned: {json.dumps(row)}")
    print(f"\n{'target':<64}{'is':>10}{'at most':>9}")
    for target in targets(loops, traces, hints):
        print(f"{target.name:<64}{target.value:>10.4f}{target.limit:>9.3f}{target.verdict}")


def main() -> None:
    """Play, compile, alternate, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_virtual")
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--held", action="store_true", help="no loops and no times")
    parser.add_argument("--growing", action="store_true", help="compare growing pages alone")
    parser.add_argument("--record", action="store_true", help="add the figures to the results")
    parser.add_argument("--json", action="store_true", help="print figures instead of tables")
    options = parser.parse_args()
    read = {path.name: read_trace(path) for path in options.traces}
    if options.growing:
        columns = {name: trace_columns(trace) for name, trace in read.items()}
        growing = growing_figures(columns, options.rounds)
        print(json.dumps(growing)) if options.json else show_growing(growing)
        if options.record:
            record.append("bench_virtual", {"growing": growing})
        return
    traces = {name: trace_figures(trace_columns(trace)) for name, trace in read.items()}
    if options.held:
        for row in (row for figures in traces.values() for row in figures.values()):
            row.pop("ns_per_operation", None)
    hints = {name: hinted(trace) for name, trace in read.items()}
    loops = {} if options.held else loop_figures(options.rounds)
    if options.json:
        print(json.dumps({"ns": loops, "traces": traces, "hints": hints}))
    else:
        show_all(loops, traces, hints)
    if options.record:
        record.append("bench_virtual", {"ns": loops, "traces": traces, "hints": hints})


if __name__ == "__main__":
    main()
