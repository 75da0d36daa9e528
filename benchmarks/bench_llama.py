"""Tokens per second and memory of a Llama in a GGUF file, beside llama.cpp and ONNX Runtime.

    python -m benchmarks.bench_llama MODEL.gguf --peer FOLDER [--quick] [--json] [--record]

llama.cpp reads the file, built from source into FOLDER where it is not there yet. Tightship and
ONNX Runtime read the same integers and scales as MatMulNBits with accuracy level 4
(gguf_decoder.py). Each is a process, and they take turns; a ratio is the median over rounds of
Tightship's tokens per second over the peer's of the same round. ONNX Runtime computes the logits of
all tokens of a prompt, the others those of the last. `--clock processor` divides by the processor
time of the process instead, which other work on the machine changes less; it says nothing of two
threads, which wait for each other. Memory is that of a fresh process after a prompt of 16 tokens:
its high-water mark, and the sum of the proportional set sizes of four.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import genai_contender, gguf_decoder, llama_peer, record

PROMPTS, PASTS = (128, 512), (128, 2048)
CONTEXTS = (2048, 8192, 32768)
SPEED_CONTEXT = 4096
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Files:
    """The model in both forms, llama.cpp's driver, and folders by kind of what others read."""

    gguf: Path
    onnx: Path
    driver: Path
    others: Path = Path()

    def command(self, kind: str, context: int, threads: int) -> list[str]:
        """Return the command of a contender."""
        if kind.startswith("llama.cpp"):
            return [str(self.driver), str(self.gguf), str(context), str(int(kind == "llama.cpp"))]
        is_other = kind in genai_contender.KINDS
        module = "genai_contender" if is_other else "llama_contender"
        path = self.others / kind if is_other else self.onnx
        contender = [sys.executable, "-m", f"benchmarks.{module}"]
        return [*contender, kind, str(path), str(context), str(threads)]


class Contender:
    """A process that answers commands."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def answer(self) -> str:
        """Read a line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended with {self.process.wait()}")
        return line

    def ask(self, command: str) -> float:
        """Send a command, and read the figure."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        return float(self.answer())

    def rate(self, command: str, clock: str) -> float:
        """Send a command, and return the tokens per second of a clock."""
        before = self.processor_s()
        by_wall = self.ask(command)
        return by_wall if clock == "wall" else _tokens(command) / (self.processor_s() - before)

    def processor_s(self) -> float:
        """Return the processor time of all threads that run."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text(encoding="ascii").split()[0]) for each in tasks) / 1e9

    def bytes_of(self, file: str, field: str) -> int:
        """Return a figure of the process in `/proc`."""
        text = Path(f"/proc/{self.process.pid}/{file}").read_text(encoding="ascii")
        (line,) = (each for each in text.splitlines() if each.startswith(field + ":"))
        return int(line.split()[1]) * 1024


def _tokens(command: str) -> int:
    """Return the tokens that a command computes once the text is there that it goes on with."""
    name, first, second, *_ = command.split()
    count, steps = int(first), int(second)
    return {"prompt": count, "steps": steps, "together": count * (steps - 1)}[name]


@contextmanager
def contender(command: Sequence[str]) -> Iterator[Contender]:
    """Start a process, and end it."""
    made = Contender(command)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def main() -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=Path, help="a Llama of Q4_0 or Q8_0")
    parser.add_argument("--peer", type=Path, required=True, help="folder of llama.cpp's build")
    parser.add_argument("--kinds", default="tightship,llama.cpp,onnxruntime", help="contenders")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="of speed")
    parser.add_argument("--only", choices=("speed", "memory"), help="leave the other out")
    parser.add_argument("--quick", action="store_true", help="one round, short texts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    parser.add_argument("--note", default="", help="what else ran on the machine; recorded")
    options = parser.parse_args()
    found: dict[str, Any] = {"model": options.gguf.name, "note": options.note}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TIGHTSHIP_CACHE_DIR"] = f"{folder}/prepared"
        onnx = Path(folder) / "decoder.onnx"
        gguf_decoder.write(gguf_decoder.read(options.gguf), onnx)
        files = Files(options.gguf, onnx, llama_peer.driver(options.peer.resolve()))
        kinds = options.kinds.split(",")
        if options.only != "memory":
            rounds = 1 if options.quick else options.rounds
            found["clock"] = options.clock
            found["speed"] = [
                row
                for threads in map(int, options.threads.split(","))
                for row in speed(
                    files, kinds, Turns(threads, rounds, options.clock), is_quick=options.quick
                )
            ]
        if options.only != "speed":
            found["memory"] = memory(files, kinds, is_quick=options.quick)
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    if options.record:
        record.append("bench_llama", found)


@dataclass(frozen=True, slots=True)
class Turns:
    """Number of rounds, threads of each contender, and the clock of their speed."""

    threads: int
    rounds: int
    clock: str


def speed(files: Files, kinds: Sequence[str], turns: Turns, *, is_quick: bool) -> list[Any]:
    """Time prompts and steps; a row for each command."""
    prompts, pasts, count = ((16,), (16,), 4) if is_quick else (PROMPTS, PASTS, 17)
    commands = [f"prompt {n}" for n in prompts] + [f"steps {n} {count}" for n in pasts]
    with ExitStack() as stack:
        running = {
            kind: stack.enter_context(contender(files.command(kind, SPEED_CONTEXT, turns.threads)))
            for kind in kinds
        }
        for each in running.values():
            each.answer()
        return [_row(running, command, turns) for command in commands]


def _row(running: dict[str, Contender], command: str, turns: Turns) -> dict[str, Any]:
    line = f"{command} {turns.threads}"
    figures: dict[str, list[float]] = {kind: [] for kind in running}
    for turn in range(turns.rounds + 1):  # the first warms up
        for kind in list(running)[:: 1 if turn % 2 else -1]:
            figures[kind].append(running[kind].rate(line, turns.clock))
    kept = {kind: each[1:] for kind, each in figures.items()}
    own, *others = kept
    ratios = {
        kind: statistics.median(a / b for a, b in zip(kept[own], kept[kind], strict=True))
        for kind in others
    }
    medians = {kind: statistics.median(each) for kind, each in kept.items()}
    return {"command": " ".join(command.split()[:2]), "threads": turns.threads,
            "tokens_per_s": medians, "ratio_to": ratios}  # fmt: skip


def memory(files: Files, kinds: Sequence[str], *, is_quick: bool) -> list[Any]:
    """Measure processes after a short prompt; a row for each contender and context."""
    more = {"tightship": "tightship-shared", "llama.cpp": "llama.cpp-unrepacked"}
    every = [*kinds, *(more[kind] for kind in kinds if kind in more)]
    rows: list[Any] = []
    for kind in every:
        for context in CONTEXTS[:1] if is_quick else CONTEXTS:
            if kind == "tightship-shared" and context == CONTEXTS[0]:
                with contender(files.command(kind, context, 2)) as first:
                    first.answer()  # prepares the file, which the others find
            with contender(files.command(kind, context, 2)) as one:
                one.answer()
                one.ask("prompt 16 2")
                rows.append({
                    "kind": kind, "context": context,
                    "high_water_bytes": one.bytes_of("status", "VmHWM"),
                    "resident_bytes": one.bytes_of("status", "VmRSS"),
                    "anonymous_bytes": one.bytes_of("status", "RssAnon"),
                    "pss_bytes": one.bytes_of("smaps_rollup", "Pss"),
                })  # fmt: skip
        rows.append({"kind": kind, "context": CONTEXTS[0], "processes": 4,
                     "pss_bytes": _together(files, kind, 4)})  # fmt: skip
    return rows


def _together(files: Files, kind: str, count: int) -> int:
    """Return the sum of the proportional set sizes of processes that run at once."""
    with ExitStack() as stack:
        command = files.command(kind, CONTEXTS[0], 1)
        running = [stack.enter_context(contender(command)) for _ in range(count)]
        for each in running:
            each.answer()
        for each in running:
            each.ask("prompt 16 1")
        return sum(each.bytes_of("smaps_rollup", "Pss") for each in running)


def show(found: dict[str, Any]) -> None:
    """Print speed and memory as far as they were measured."""
    for row in found.get("speed", ()):
        figures = "  ".join(f"{kind} {rate:.1f}" for kind, rate in row["tokens_per_s"].items())
        ratios = "  ".join(f"{ratio:.2f} of {kind}" for kind, ratio in row["ratio_to"].items())
        print(f"{row['command']:12s} {row['threads']} threads: {figures}   ratios {ratios}")
    for row in found.get("memory", ()):
        sizes = "  ".join(
            f"{name.removesuffix('_bytes')} {size / MIB:.0f}"
            for name, size in row.items()
            if name.endswith("_bytes")
        )
        processes = f"{row['processes']} processes" if "processes" in row else "1 process"
        print(f"{row['kind']:22s} {row['context']:6d} {processes}: {sizes} MiB")


if __name__ == "__main__":
    main()
