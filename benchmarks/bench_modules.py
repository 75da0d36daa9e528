"""Time and memory of plans of PyTorch's modules on the device `meta`, in processes of their own.

    python -m benchmarks.bench_modules --record

Each process imports torch, makes a module without memory, and plans its inference or a step of
training with Adam. Its processor time and largest resident memory are of all of that.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks import record

NAMES = ("ResNet-50", "GPT-2", "Llama-like 7B")
WAYS = ("inference", "training")


def main(arguments: Sequence[str] | None = None) -> None:
    """Plan every module both ways, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="processes of each; medians")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    parser.add_argument("--only", choices=NAMES, help="one module")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        sys.stdout.write(json.dumps(planned(*options.one)))
        return
    names = (options.only,) if options.only else NAMES
    rows = []
    for name, way in ((name, way) for name in names for way in WAYS):
        rows.append(row(name, way, options.rounds))
        print(json.dumps(rows[-1]), flush=True)
    if options.record:
        record.begin("bench_modules").write({"rows": rows})


def row(name: str, way: str, rounds: int) -> dict[str, object]:
    """Plan a module in as many processes; bytes are the same in all."""
    found = [apart(name, way) for _ in range(rounds)]
    return {**found[0], **{k: round(median(f[k] for f in found), 1) for k in ("cpu_s", "rss_mib")}}


def apart(name: str, way: str) -> dict[str, float]:
    """Plan a module in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.bench_modules", "--one", name, way]
    done = subprocess.run(command, cwd=record.ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def planned(name: str, way: str) -> dict[str, object]:
    """Plan a module in this process."""
    import torch
    from benchmarks.module_nets import NETS

    import tightship

    make, inputs = NETS[name]
    with torch.device("meta"):
        module = make()
    if way == "inference":
        start = time.process_time()
        plan = tightship.plan(module.eval(), inputs())
    else:
        axis = None if name == "ResNet-50" else -1
        start = time.process_time()
        plan = tightship.plan(
            module, inputs(), loss="cross_entropy", classes_axis=axis,
            optimizer=tightship.Adam(1e-4),
        )  # fmt: skip
    return {
        "model": name,
        "way": way,
        "cpu_s": time.process_time(),
        "plan_cpu_s": round(time.process_time() - start, 1),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "parameters": sum(each.numel() for each in module.parameters()),
        "peak_bytes": plan.peak_bytes,
        "weights_bytes": plan.weights_bytes - plan.optimizer_bytes,
        "optimizer_bytes": plan.optimizer_bytes,
        "arena_bytes": plan.arena_bytes,
    }


if __name__ == "__main__":
    main()
