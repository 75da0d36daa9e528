"""Memory that a process holds after it has served one model with many shapes, beside ONNX Runtime.

    python -m benchmarks.bench_variable [--quick] [--record]

An encoder of six layers, 384 wide, of a vocabulary of 30,522: 86 MiB of weights; `ids` and `mask`
of [batch, steps]. Each figure is a fresh process: two small requests (1 x 16), then

- `ratchet`: 20 random large shapes (batch up to 32, up to 512 steps), then 10 small requests;
- `lengths`: two requests of 511 steps, then 300 distinct lengths up to 510 in random order;
- `reload`: 50 times a session is made, runs a small and a large request and is closed;
- `turns`: four processes run a request of 8 x 384 in turns, each with arenas of its own or all
  over one shared pool; proportional set size (PSS) summed, and the size of the pool's file.

RSS is read when the last request is answered, nothing in between. `steady` is the time of a mix
of large and small requests, with the memory kept and given back, in turns in one process.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.record import ROOT, append
from benchmarks.resident import status
from numpy.typing import NDArray
from tests.zoo.open_lengths import sentences

MIB = 1 << 20
WORDS, LONGEST = 30522, 512
CONTENDERS = ("tightship", "ort", "ort-noarena", "ort-shrinkage", "ort-noarena-trim")
Feeds = Mapping[str, NDArray[Any]]
Runner = Callable[[Feeds], object]


class Session:
    """A model of one of the contenders."""

    def __init__(self, contender: str, model: str) -> None:
        self.close: Callable[[], object] = lambda: None
        runtime, *settings = contender.split("-")
        if runtime == "tightship":
            import tightship

            idle_s = None if "keep" in settings else 2.0
            shapes = {"ids": (1, 16), "mask": (1, 16)}
            loaded = tightship.load(model, shapes=shapes, idle_s=idle_s)
            self.run: Runner = loaded.run
            self.close = loaded.close
            return
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_cpu_mem_arena = "noarena" not in settings
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        of_run = onnxruntime.RunOptions()
        if "shrinkage" in settings:
            of_run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        trim = ctypes.CDLL(None).malloc_trim if "trim" in settings else lambda _: None
        self.run = lambda feeds: (session.run(None, feeds, of_run), trim(0))


def request(batch: int, steps: int) -> Feeds:
    """Tokens from a seed that depends on the shape."""
    ids = np.random.default_rng((batch, steps)).integers(0, WORDS, (batch, steps))
    return {"ids": ids, "mask": np.ones((batch, steps), np.int64)}


SMALL = request(1, 16)


def larges(count: int) -> list[Feeds]:
    """Requests of random shapes from a seed."""
    random = np.random.default_rng(7)
    return [request(int(random.integers(1, 33)), int(random.integers(16, LONGEST + 1)))
            for _ in range(count)]  # fmt: skip


def rss() -> int:
    """Return the resident bytes of this process."""
    return status()["VmRSS"]


def ratchet(contender: str, model: str, count: int) -> dict[str, int]:
    """Small requests, `count` large ones, ten small ones."""
    run = Session(contender, model).run
    for _ in range(2):
        run(SMALL)
    before = rss()
    for feeds in larges(count):
        run(feeds)
    large = rss()
    for _ in range(10):
        run(SMALL)
    after, peak = rss(), status()["VmHWM"]
    return {"before_bytes": before, "large_bytes": large, "after_bytes": after, "peak_bytes": peak}


def lengths(contender: str, model: str, count: int) -> dict[str, int]:
    """The longest, then `count` distinct lengths."""
    run = Session(contender, model).run
    for _ in range(2):
        run(request(1, LONGEST - 1))
    before = rss()
    for steps in np.random.default_rng(3).permutation(np.arange(1, LONGEST - 1))[:count]:
        run(request(1, int(steps)))
    return {"before_bytes": before, "after_bytes": rss()}


def reload(contender: str, model: str, count: int) -> dict[str, int]:
    """A session made, run and closed `count` times; the first one is what it starts from."""

    def once() -> None:
        with closing(Session(contender, model)) as session:
            session.run(SMALL)
            session.run(request(4, 128))

    once()
    before = rss()
    for _ in range(count):
        once()
    return {"before_bytes": before, "after_bytes": rss()}


def steady(_: str, model: str, rounds: int) -> dict[str, float]:
    """Median ratio of times of a mix, memory given back over memory kept, and of its large runs."""
    own, kept = Session("tightship", model), Session("tightship-keep", model)
    feeds = [request(8, 128), *[SMALL] * 9]
    ratios: dict[str, list[float]] = {"mix": [], "large": []}
    for turn in range(2 + rounds):
        taken = {}
        for session in (own, kept) if turn % 2 else (kept, own):
            times = []
            for given in feeds:
                started = time.perf_counter()
                session.run(given)
                times.append(time.perf_counter() - started)
            taken[session is own] = sum(times), times[0]
        if turn >= 2:
            for name, (a, b) in zip(ratios, zip(taken[True], taken[False], strict=True),
                                    strict=True):  # fmt: skip
                ratios[name].append(a / b)
    return {name: statistics.median(values) for name, values in ratios.items()}


def turns(contender: str, model: str, count: int) -> dict[str, int]:
    """PSS of four processes that run in turns, and what their shared file takes."""
    from tightship.resource import SharedArenaPool

    command = [sys.executable, "-m", "benchmarks.bench_variable", "--part", "turn", contender]
    with SharedArenaPool("bench_variable") as pool:
        processes = [
            subprocess.Popen([*command, model, "0"], cwd=ROOT, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(4)
        ]  # fmt: skip
        for _ in range(count):
            for process in processes:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
        pss = sum(pss_of(process.pid) for process in processes)
        figures = {"pss_bytes": pss, "file_bytes": pool.size_bytes}
        for process in processes:
            process.communicate()
    return figures


def turn(contender: str, model: str, _: int) -> dict[str, int]:
    """One of the four: a run for each line."""
    import tightship
    from tightship.resource import SharedArenaPool

    is_shared = contender.endswith("-shared")
    shapes = {"ids": (1, 16), "mask": (1, 16)}
    with (
        SharedArenaPool("bench_variable") if is_shared else nullcontext() as pool,
        tightship.load(model, shapes=shapes, idle_s=None, arena_pool=pool) as loaded,
    ):
        for _line in sys.stdin:
            loaded.run(request(8, 384))
            print(0, flush=True)
    return {}


def pss_of(process: int) -> int:
    """Proportional set size of a process, in bytes."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


PARTS: dict[str, tuple[Callable[[str, str, int], Mapping[str, float]], int, int]] = {
    "ratchet": (ratchet, 20, 5),
    "lengths": (lengths, 300, 60),
    "reload": (reload, 50, 5),
    "turns": (turns, 3, 2),
    "turn": (turn, 0, 0),
    "steady": (steady, 60, 20),
}
"""Measurements by name: function, rounds, and rounds if it is to be quick."""
TOLD = {"steady": ("tightship",), "turns": ("tightship", "tightship-shared"), "turn": ()}
"""Contenders whose figures are printed, if not all."""


def measured(part: str, contender: str, model: Path, count: int) -> dict[str, float]:
    """Figures of a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_variable", "--part", part, contender, str(model),
         str(count)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def line(part: str, contender: str, figures: Mapping[str, float]) -> str:
    """A row of the table, in MiB."""
    text = f"{part:<9}{contender:<18}"
    for name, value in figures.items():
        is_bytes = name.endswith("_bytes")
        text += f"{name.removesuffix('_bytes')} {value / (MIB if is_bytes else 1):8.2f}  "
    if "after_bytes" in figures:
        text += f"after / before {figures['after_bytes'] / figures['before_bytes']:.3f}"
    return text


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_variable")
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--part", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        part, contender, model, count = options.part
        print(json.dumps(PARTS[part][0](contender, model, int(count))))
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as folder:
        path = Path(folder) / "sentences.onnx"
        path.write_bytes(sentences(6, 384, 12, WORDS, LONGEST))
        for part, (_, count, few) in PARTS.items():
            for contender in TOLD.get(part, CONTENDERS):
                figures = measured(part, contender, path, few if options.quick else count)
                rows.append({"part": part, "contender": contender, "figures": figures})
                print(line(part, contender, figures), flush=True)
    if options.record:
        append("bench_variable", {"rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
