"""Record every benchmark anew on this machine, one after another.

    python -m benchmarks.record_all
    python -m benchmarks.record_all bench_engine bench_memory --folder MODELS
    python -m benchmarks.record_all --peer llama=FOLDER --peer gguf=MODEL.gguf --peer data=FOLDER

Each benchmark is a process, and adds its own lines to `results/`; rows of other processors keep
their date and commit. Those that need what is not on every machine are left out with the reason,
until it is given by `--peer`. One that fails does not end the others. `--list` only prints what
would run. Exits with 1 if one failed. It takes hours on two cores, and figures are worth
as much as the machine is quiet meanwhile; the load is recorded with them.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks import record

from tightship.view.table import Column, table

PEERS = {
    "data": "folder of planner problems and traces",
    "gguf": "language model in a GGUF file",
    "llama": "folder in which llama.cpp is built",
    "malloc": "folder of other allocators' packages, unpacked",
    "torch": "interpreter that has PyTorch",
    "trace": "recorded trace of allocations",
    "triton": "addresses of a real Triton server, HTTP,GRPC",
}
"""Files, folders and servers that benchmarks take, by the name that `--peer` gives it."""
MODELS = "resnet50,bert,vgg19,densenet121,squeezenet,gpt2_block"
"""Models of the README's table."""
COLUMNS = (Column("benchmark"), Column("minutes", number=True), Column("result"))


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Module of a benchmark, and its arguments; `{name}` in them stands for a peer.

    Attributes:
        takes_folder: Whether it keeps models in `--folder`.
    """

    module: str
    arguments: tuple[str, ...] = ()
    takes_folder: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the peers that it takes."""
        return tuple(name for name in PEERS if f"{{{name}}}" in self.arguments)

    def command(self, peers: Mapping[str, str], folder: str | None) -> list[str]:
        """Return the arguments of the interpreter."""
        filled = [each.format_map(peers) if each[:1] == "{" else each for each in self.arguments]
        kept = ["--folder", folder] if folder and self.takes_folder else []
        return ["-m", f"benchmarks.{self.module}", *filled, *kept]


RECORD = ("--record",)
INT8 = ("--kinds", "tightship-int8-float16,llama.cpp")
"""Contenders that both round activations to int8, as llama.cpp always does."""
SUITES = ("reorder", "recompute", "squeeze", "note", "parallel", "dynamic")
"""Suites of `bench_training` that are no benchmark of their own."""
BENCHMARKS = (
    Benchmark("bench_engine", ("--models", "all", "--threads", "1,2"), takes_folder=True),
    Benchmark("bench_memory", ("--models", MODELS), takes_folder=True),
    Benchmark("bench_share", takes_folder=True),
    Benchmark("bench_plan"),
    Benchmark("bench_variable", RECORD),
    Benchmark("bench_shapes", RECORD),
    Benchmark("dynamic_shapes", RECORD),
    Benchmark("kernel_choice", RECORD),
    Benchmark("bench_precision", RECORD, takes_folder=True),
    Benchmark("bench_block_product", RECORD),
    Benchmark("bench_loops", RECORD),
    Benchmark("bench_cache", RECORD, takes_folder=True),
    Benchmark("bench_pools", RECORD),
    Benchmark("node_coverage"),
    Benchmark("bench_decode", RECORD),
    Benchmark("bench_cache_types", RECORD),
    Benchmark("bench_llama", ("{gguf}", "--peer", "{llama}", *RECORD)),
    Benchmark("bench_text", ("{gguf}", "--peer", "{llama}", *RECORD)),
    Benchmark("bench_text", ("{gguf}", "--peer", "{llama}", *INT8, *RECORD)),
    Benchmark("bench_driver"),
    Benchmark("driver_oip", ("--triton", "{triton}", *RECORD)),
    Benchmark("bench_serve"),
    Benchmark("bench_http"),
    Benchmark("bench_cluster", RECORD, takes_folder=True),
    Benchmark("bench_workers", RECORD),
    Benchmark("parallel_plans", RECORD),
    Benchmark("bench_training", (*SUITES, *RECORD)),
    Benchmark("mixed_precision", RECORD),
    Benchmark("training_steps", ("--torch-python", "{torch}", *RECORD)),
    Benchmark("bench_recompute", RECORD),
    Benchmark("bench_rematerialization", RECORD),
    Benchmark("bench_modules", RECORD),
    Benchmark("bench_large"),
    Benchmark("bench_planner", ("--data", "{data}")),
    Benchmark("bench_reuse", ("{data}",)),
    Benchmark("bench_resource", ("--peers", "{malloc}", "--trace", "{trace}")),
    Benchmark("bench_virtual", ("{trace}", *RECORD)),
    Benchmark("bench_view", RECORD),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run benchmarks, print how each ended, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record_all",
        description=__doc__.partition("\n")[0],
        epilog="Peers: " + "; ".join(f"{name}, {what}" for name, what in PEERS.items()) + ".",
    )
    parser.add_argument("names", nargs="*", metavar="BENCHMARK", help="these alone")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PLACE")
    parser.add_argument("--folder", help="keep the models there for the next run")
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    options = parser.parse_args(arguments)
    peers = dict(_peer(parser, each) for each in options.peer)
    modules = sorted({each.module for each in BENCHMARKS})
    for name in options.names:
        if name not in modules:
            parser.error(f"`{name}` is not a benchmark; choose from {', '.join(modules)}")
    rows = []
    for benchmark in BENCHMARKS:
        if options.names and benchmark.module not in options.names:
            continue
        command = benchmark.command({name: f"({name})" for name in PEERS} | peers, options.folder)
        missing = [f"--peer {name}=" for name in benchmark.needs if name not in peers]
        minutes, result = 0.0, f"left out: give {' and '.join(missing)}" if missing else "recorded"
        sys.stdout.write(" ".join(["python", *command]) + (f"  # {result}\n" if missing else "\n"))
        sys.stdout.flush()
        if not (options.list or missing):
            minutes, code = _run(command)
            result = f"failed with status {code}" if code else result
        rows.append((benchmark.module, f"{minutes:.1f}", result))
    if not options.list:
        sys.stdout.write("\n" + "\n".join(table(COLUMNS, rows)) + "\n")
    return int(any(result.startswith("failed") for _, _, result in rows))


def _peer(parser: argparse.ArgumentParser, said: str) -> tuple[str, str]:
    """Return name and place of a peer."""
    name, _, place = said.partition("=")
    if name not in PEERS or not place:
        parser.error(f"`--peer {said}` is not NAME=PLACE with a name of {', '.join(PEERS)}")
    return name, place


def _run(command: Sequence[str]) -> tuple[float, int]:
    """Run a benchmark, which prints its own figures; return its minutes and exit status."""
    start = time.monotonic()
    code = subprocess.run([sys.executable, *command], cwd=record.ROOT, check=False).returncode
    return (time.monotonic() - start) / 60, code


if __name__ == "__main__":
    sys.exit(main())
