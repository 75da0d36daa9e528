"""A training step of ours in a process of its own, which waits for its turn.

    python -m benchmarks.own_step MODEL FEEDS THREADS RECOMPUTE [PRECISION]

As `torch_step`, of an ONNX file and an `npz` file of what it is fed, labels among it.
"""

import json
import sys
import time

import numpy as np

import tightship


def status(field: str) -> int:
    """A figure of the process, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def main(
    model: str, feeds: str, threads: int, recompute: float, precision: str = "float32"
) -> None:
    """Obey lines until there are no more."""
    imported = status("VmRSS")
    given = dict(np.load(feeds))
    with tightship.train(
        model,
        "cross_entropy",
        tightship.Sgd(0.01),
        threads=threads,
        recompute=recompute,
        precision=precision,  # type: ignore[arg-type]
    ) as trainer:
        said = {"imported": imported, "before": status("VmRSS"), "planned": trainer.peak_bytes}
        print(json.dumps(said), flush=True)
        for line in sys.stdin:
            walls, cpus = [], []
            for _ in range(int(line.split()[1])):
                started, used = time.perf_counter(), time.process_time()
                trainer.step(given)
                walls.append(time.perf_counter() - started)
                cpus.append(time.process_time() - used)
            print(json.dumps({"walls": walls, "cpus": cpus, "peak": status("VmHWM")}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), *sys.argv[5:])
