"""Compare allocators of a GPU's memory: bytes and time that training and inference take with each.

    python -m benchmarks.gpu.bench_gpu [--workloads NAMES] [--contenders NAMES] [--iterations N]

Needs a CUDA device and a build of PyTorch for it, and says what is missing. First, what calls of
the driver cost. Then workloads: each figure is of a process of its own, in which one allocator
serves everything. Contenders alternate; times are medians of iterations, the first ones left out,
which the allocators learn in. `reserved` and `in use` are what an allocator counts of itself, at
their peaks; `device` is what the driver says the process takes, context included, at most after an
iteration.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from benchmarks import record
from benchmarks.gpu.driver_calls import call_figures

from tightship.errors import LibraryError

CONTENDERS: Mapping[str, Mapping[str, str]] = {
    "native": {},
    "expandable_segments": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "cudaMallocAsync": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "tightship": {},
    "tightship:16MiB": {},  # pages of another size
}
NAMES = ("transformer", "transformer_of_lengths", "convolutional", "serving")

SECONDS_MAX = 150  # of a process

Row = dict[str, object]


def measured(workload: str, contender: str, iterations: int, round_number: int) -> Row:
    """One process's figures; what it said last where it failed."""
    environment = {**os.environ, **CONTENDERS[contender]}
    command = [sys.executable, "-m", "benchmarks.gpu.contender", workload, contender]
    row: Row = {"workload": workload, "contender": contender, "round": round_number}
    try:
        done = subprocess.run(
            [*command, str(iterations)], env=environment, capture_output=True, text=True,
            check=False, timeout=SECONDS_MAX,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {**row, "error": f"It took more than {SECONDS_MAX} s."}
    if done.returncode != 0:
        return {**row, "error": done.stderr.strip()[-400:] or f"exit code {done.returncode}"}
    return {**row, **json.loads(done.stdout)}


def require_torch() -> None:
    """Ends the program, with what to do, where PyTorch cannot use the device."""
    asked = "import torch; print(torch.__version__ if torch.cuda.is_available() else '')"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1]
    elif not done.stdout.strip():
        reason = "torch.cuda.is_available() is false"
    else:
        return
    raise SystemExit(
        f"PyTorch cannot use the device ({reason}): install a build of it for this driver. "
        "Workloads are not measured, and nothing is recorded."
    )


def _line(row: Row) -> str:
    name = f"{row['workload']:24} {row['contender']:20}"
    if "error" in row:
        return f"{name} {str(row['error']).splitlines()[-1:]}"
    mib = " ".join(
        f"{int(str(row[key])) / 2**20:12.1f}"
        for key in ("reserved_bytes", "allocated_bytes", "device_bytes")
    )
    return f"{name} {mib} {float(str(row['ratio'])):8.3f} {float(str(row['median_ms'])):10.2f}"


def _rows(given: argparse.Namespace, *, is_quiet: bool) -> Iterator[Row]:
    """Rows in the order of their measurement, each printed at once unless `is_quiet`."""
    if not is_quiet:
        heads = (
            f"{'reserved MiB':>12} {'in use MiB':>12} {'device MiB':>12} {'ratio':>8} {'ms':>10}"
        )
        print(f"{'':45} {heads}")
    for workload in given.workloads.split(","):
        for number in range(given.rounds):
            for contender in given.contenders.split(","):
                row = measured(workload, contender, given.iterations, number)
                if not is_quiet:
                    print(_line(row), flush=True)
                yield row


def main() -> None:
    """Every workload with every contender, round by round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(NAMES), help="names, by commas")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="names, by commas")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print figures instead of a table")
    given = parser.parse_args()
    try:
        calls = call_figures()
    except LibraryError as error:
        raise SystemExit(f"{error} Nothing is measured.") from None
    if not given.json:
        print("\n".join(f"{label:45} {value:12.2f} microseconds" for label, value in calls.items()))
    require_torch()
    rows: list[Row] = []
    command = " ".join(["python", "-m", "benchmarks.gpu.bench_gpu", *sys.argv[1:]])
    line = record.begin("bench_gpu")
    for row in _rows(given, is_quiet=given.json):
        rows.append(row)
        if not all("error" in each for each in rows):
            line.write({"command": command, "calls": calls, "rows": rows})
    if given.json:
        print(json.dumps({"calls": calls, "rows": rows}))
    if all("error" in row for row in rows):
        raise SystemExit("Nothing could be measured, nor is anything recorded.")


if __name__ == "__main__":
    main()
