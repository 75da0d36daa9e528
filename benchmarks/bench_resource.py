"""Cost of a block: our resources, and glibc, mimalloc, jemalloc and tcmalloc in one process.

    python -m benchmarks.bench_resource [--peers FOLDER] [--trace FILE] [--rounds N] [--quick]

Compiles `resource_loops.cpp` with the core's sources, and a nanobind module of empty calls. Traces
are of any format that `tightship replay` reads.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import nanobind
from benchmarks import record
from benchmarks.resource_numpy import EMPTY_BYTES, NO_HUGE, figures_of_both

from tightship.resource import CompositeResource, HostResource, MemoryResource, SlabResource
from tightship.resource.spec import resource_from
from tightship.trace.events import Trace, read_trace
from tightship.trace.replay import replay

HERE = Path(__file__).parent
NATIVE = record.ROOT / "native"
PEERS = {
    "mimalloc": "libmimalloc.so*",
    "jemalloc": "libjemalloc.so*",
    "tcmalloc": "libtcmalloc_*.so*",
}
FLAGS = ("-O2", "-DNDEBUG", "-std=c++20", "-fPIC", "-fvisibility=hidden")
STATIC_TLS = "glibc.rtld.optional_static_tls=32768"
"""Room for jemalloc's variables of a thread, in a library that is opened late."""

CALLS = 20_000

Key = tuple[str, str]
"""Loop and contender."""


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio of two medians and what it should be at most."""

    name: str
    over: Key
    under: tuple[Key, ...]
    limit: float

    def ratio(self, medians: Mapping[Key, float]) -> float:
        """The first median over the least of the others."""
        return medians[self.over] / min(medians[key] for key in self.under if key in medians)


def peers_of(loop: str) -> tuple[Key, ...]:
    """The same loop by every other allocator."""
    return tuple((loop, name) for name in ("glibc", *PEERS))


def numpy_target(loop: str, limit: float) -> Target:
    """Arrays of ours over NumPy's own."""
    return Target(
        f"{loop}, over NumPy's own", (loop, "main memory"), ((loop, "NumPy's own"),), limit
    )


TARGETS = (
    Target("slab over best peer, 64 bytes", ("pair 64", "slab"), peers_of("pair 64"), 1.1),
    Target("the same by virtual calls", ("pair 64", "slab, virtual calls"), peers_of("pair 64"),
           1.1),
    Target("composite over best peer, random sizes", ("replace 16-1024", "composite"),
           peers_of("replace 16-1024"), 1.2),
    *(
        Target(f"slab {full} % full over empty", ("pair", f"slab {full} % full"),
               (("pair", "slab 0 % full"),), 1.5)
        for full in (50, 90, 99)
    ),
    Target("slab, 2 threads over 1", ("pair 64, 2 threads", "slab"), (("pair 64", "slab"),),
           2 / 1.9),
    Target("hand-over over mimalloc", ("hand-over 64", "slab"), (("hand-over 64", "mimalloc"),),
           1.0),
    Target("64 at once over one by one", ("many 64", "slab"), (("batch 64 of 64", "slab"),), 1 / 3),
    Target("free list, 1,000,000 blocks over 1,000", ("best fit", "1000000 free blocks"),
           (("best fit", "1000 free blocks"),), 4.0),
    Target("Python calls over empty ones", ("Python pair 64", "slab"),
           (("Python pair 64", "empty"),), 1.5),
    *(numpy_target(f"NumPy empty {size >> 10} KiB", 1.0) for size in EMPTY_BYTES),
    numpy_target("NumPy fill 16 MiB", 1.0),
    numpy_target("NumPy add 16 MiB", 1.0),
    numpy_target("NumPy fill 64 MiB", 1 / 2),
    numpy_target("NumPy add 64 MiB", 1 / 1.4),
    numpy_target(f"NumPy fill 64 MiB{NO_HUGE}", 1 / 5),
)  # fmt: skip


def replay_target(trace: str) -> Target:
    """The default composite over glibc."""
    return Target(f"replay of {trace}, over glibc", (f"replay {trace}", "composite"),
                  ((f"replay {trace}", "glibc"),), 1.0)  # fmt: skip


def libraries(folders: Iterable[Path]) -> dict[str, Path]:
    """A file of each peer that is found."""
    found: dict[str, Path] = {}
    for folder in folders:
        for name, pattern in PEERS.items():
            files = sorted(path for path in folder.rglob(pattern) if "debug" not in path.name)
            if files:
                found.setdefault(name, files[0])
    return found


def sources() -> list[Path]:
    """List the sources of the program of loops."""
    rooms = (NATIVE / "src" / room for room in ("os", "resource"))
    return [HERE / "resource_loops.cpp", *(each for room in rooms for each in room.rglob("*.cpp"))]


def compiled(folder: Path) -> Path:
    """The program of loops."""

    def compile_one(source: Path) -> Path:
        made = folder / f"{source.stem}.o"
        subprocess.run(
            ["g++", *FLAGS, f"-I{NATIVE / 'include'}", "-c", source, "-o", made], check=True
        )
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources()))
    program = folder / "resource_loops"
    subprocess.run(["g++", *objects, "-o", program, "-ldl", "-lpthread"], check=True)
    return program


def empty_calls(folder: Path) -> Any:
    """An object whose `allocate` and `deallocate` do nothing."""
    top = Path(nanobind.source_dir()).parent
    file = folder / f"empty_calls{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(
        ["g++", *FLAGS, "-shared", "-fno-strict-aliasing", f"-I{sysconfig.get_path('include')}",
         f"-I{top / 'include'}", f"-I{top / 'ext' / 'robin_map' / 'include'}",
         HERE / "empty_calls.cpp", top / "src" / "nb_combined.cpp", "-o", file], check=True,
    )  # fmt: skip
    spec = importlib.util.spec_from_file_location("empty_calls", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Empty()


def slots_of(trace: Trace) -> Iterable[str]:
    """The lines that the program of loops reads: a block's number is its slot."""
    for event in trace.events:
        yield f"{event.number if event.is_allocation else ~event.number} {event.size_bytes}\n"


def native_figures(
    program: Path, rounds: int, found: Mapping[str, Path], traces: Mapping[str, Path]
) -> dict[Key, list[float]]:
    """Nanoseconds a block, of each round."""
    named = [f"{name}={path}" for name, path in found.items()]
    for name, path in traces.items():
        lines = program.with_name(f"{name}.txt")
        lines.write_text("".join(slots_of(read_trace(path))))
        named.append(f"@{name}={lines}")
    done = subprocess.run(
        [program, str(rounds), *named],
        env={**os.environ, "GLIBC_TUNABLES": STATIC_TLS}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(line["loop"], line["contender"]): line["ns"] for line in lines}


def calls(resource: Any) -> Callable[[], float]:
    """Nanoseconds of an allocate and a deallocate from Python."""
    allocate, deallocate = resource.allocate, resource.deallocate

    def run() -> float:
        start = time.thread_time_ns()
        for _ in range(CALLS):
            deallocate(allocate(64), 64)
        return (time.thread_time_ns() - start) / CALLS

    return run


def python_figures(rounds: int, empty: Any) -> dict[Key, list[float]]:
    """The calls from Python, turn by turn."""
    resources: dict[str, MemoryResource] = {
        "slab": SlabResource(HostResource(), 1 << 20, 64),
        "composite": CompositeResource(HostResource(), 16 << 20),
    }
    runs = {name: calls(resource) for name, resource in (*resources.items(), ("empty", empty))}
    figures: dict[Key, list[float]] = {("Python pair 64", name): [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            figures["Python pair 64", name].append(run())
    return figures


def held(traces: Mapping[str, Path]) -> dict[str, float]:
    """Return the peak bytes held by the default composite, over the peak live bytes."""
    return {
        name: replay(read_trace(path), lambda: resource_from("composite")).held_ratio
        for name, path in traces.items()
    }


def show(
    medians: Mapping[Key, float], least: Mapping[Key, float], targets: Iterable[Target]
) -> None:
    """Two tables."""
    print(f"{'loop':<28}{'contender':<24}{'ns, median':>12}{'least':>9}")
    for (loop, contender), ns in sorted(medians.items()):
        print(f"{loop:<28}{contender:<24}{ns:>12.2f}{least[loop, contender]:>9.2f}")
    print(f"\n{'ratio of medians':<44}{'is':>8}{'at most':>9}")
    for target in targets:
        if target.over in medians and any(key in medians for key in target.under):
            ratio = target.ratio(medians)
            verdict = "" if ratio <= target.limit else "  missed"
            print(f"{target.name:<44}{ratio:>8.2f}{target.limit:>9.2f}{verdict}")


def main() -> None:
    """Compile, alternate, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_resource")
    parser.add_argument(
        "--peers",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="where other allocators' libraries are, besides the system's folder",
    )
    parser.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--quick", action="store_true", help="5 rounds, and record nothing")
    parser.add_argument("--json", action="store_true", help="print figures instead of tables")
    options = parser.parse_args()
    rounds = 5 if options.quick else options.rounds
    system = Path("/usr/lib") / (sysconfig.get_config_var("MULTIARCH") or "")
    found = libraries([*options.peers, system])
    for name in PEERS.keys() - found.keys():
        print(f"`{name}` is not installed: it is left out.", file=sys.stderr)
    traces = {path.stem: path for path in options.trace}
    targets = (*TARGETS, *map(replay_target, traces))
    with tempfile.TemporaryDirectory() as folder:
        figures = native_figures(compiled(Path(folder)), rounds, found, traces)
        figures |= python_figures(rounds, empty_calls(Path(folder)))
    figures |= figures_of_both(min(rounds, 9))
    ratios = held(traces)
    medians = {key: median(ns) for key, ns in figures.items()}
    least = {key: min(ns) for key, ns in figures.items()}
    if options.json:
        print(json.dumps({f"{loop}: {who}": ns for (loop, who), ns in medians.items()}))
    else:
        show(medians, least, targets)
        for name, ratio in ratios.items():
            print(f"peak held over peak live, {name}: {ratio:.3f}")
    if not options.quick:
        record.append("bench_resource", {
            "peers": {name: path.resolve().name for name, path in found.items()},
            "rounds": rounds,
            "ratios": {t.name: round(t.ratio(medians), 3) for t in targets
                       if t.under[-1] in medians},
            "held over live": {name: round(ratio, 3) for name, ratio in ratios.items()},
            "ns": {f"{loop}: {who}": round(ns, 2) for (loop, who), ns in medians.items()},
            "least_ns": {f"{loop}: {who}": round(ns, 2) for (loop, who), ns in least.items()},
        })  # fmt: skip


if __name__ == "__main__":
    main()
