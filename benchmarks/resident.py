"""Memory that one contender takes to load a model and run it five times.

    python -m benchmarks.resident CONTENDER MODEL FEEDS [DATA_LIMIT_BYTES]

Prints JSON. The process has imported numpy and read the inputs when it takes its first figures,
and the high-water mark starts there; it takes the second when the runtime is imported, just
before it loads the model. A limit holds for what is reserved for writing from then on.
"""

import json
import resource
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from benchmarks.contender import load

RUNS = 5
MODULES = {"tightship": "tightship", "ort": "onnxruntime"}


def status() -> dict[str, int]:
    """Amounts of this process that the kernel reports, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    fields = (line.split(":") for line in lines if line.startswith(("Vm", "Rss")))
    return {name: int(amount.split()[0]) * 1024 for name, amount in fields}


def main(contender: str, model: str, feeds: str, limit: str = "") -> None:
    """Load, run, print what it took."""
    with np.load(feeds) as arrays:
        given = dict(arrays)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status()
    import_module(MODULES[contender.split("-", maxsplit=1)[0]])
    imported = status()
    if limit:
        allowed = imported["VmData"] + int(limit)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    loaded = load(contender, Path(model), given)
    at_load = status()
    times_ns = []
    for _ in range(RUNS):
        outputs = {}  # a plan has one run's; two runs' outputs would be twice as many
        start = time.perf_counter_ns()
        outputs = loaded.run()
        times_ns.append(time.perf_counter_ns() - start)
    after = status()
    assert all(np.isfinite(output).all() for output in outputs.values())
    figures = {
        "high_water_bytes": after["VmHWM"],
        "gain_bytes": after["VmHWM"] - before["VmRSS"],
        "load_gain_bytes": after["VmHWM"] - imported["VmRSS"],
        "before_runs_bytes": at_load["VmHWM"],
        "file_gain_bytes": after["RssFile"] - before["RssFile"],
        "data_gain_bytes": after["VmData"] - imported["VmData"],
        "planned_bytes": loaded.planned_bytes,
        "run_ms": round(min(times_ns) / 1e6, 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
