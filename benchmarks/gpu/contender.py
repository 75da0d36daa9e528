"""A process that does a workload with one allocator, and prints what that took."""

import argparse
import json
import shutil
import statistics
import subprocess
import time

import torch
from benchmarks.gpu.workloads import WORKLOADS

from tightship import _core
from tightship.plug import pools
from tightship.plug import torch as plug
from tightship.quantity import parse_bytes

WARM_UP = 10
COUNTERS = ("allocation", "exact", "remap", "created", "moved", "released", "retry", "wait")


def peaks(contender: str) -> tuple[int, int]:
    """The most bytes that were reserved and allocated."""
    if not contender.startswith("tightship"):
        return torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
    stats = plug.memory_stats(torch.cuda.current_device())
    return stats["reserved_bytes.all.peak"], stats["allocated_bytes.all.peak"]


def counters(contender: str) -> dict[str, int]:
    """Return the counters of Tightship's pool; none for other contenders."""
    if not contender.startswith("tightship"):
        return {}
    pool = _core.cuda_pool_statistics(torch.cuda.current_device())
    return {f"{name}_count": getattr(pool, f"{name}_count") for name in COUNTERS}


def driver_version() -> str:
    """Version of the driver, as `nvidia-smi` has it; empty without it."""
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().partition("\n")[0]


def main() -> None:
    """One line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("contender")
    parser.add_argument("iterations", type=int)
    given = parser.parse_args()
    name, _, page = given.contender.partition(":")
    if name == "tightship":
        page_bytes = parse_bytes(page) if page else pools.PAGE_BYTES
        torch.cuda.memory.change_current_allocator(plug.allocator(page_bytes=page_bytes))
    torch.manual_seed(0)
    iterate, times_ms, device_bytes = WORKLOADS[given.workload](), [], 0
    for _ in range(WARM_UP + given.iterations):
        start = time.perf_counter()
        iterate()
        torch.cuda.synchronize()
        times_ms.append(1e3 * (time.perf_counter() - start))
        free_bytes, total_bytes = torch.cuda.mem_get_info()
        device_bytes = max(device_bytes, total_bytes - free_bytes)
    reserved_bytes, allocated_bytes = peaks(given.contender)
    figures = {
        "reserved_bytes": reserved_bytes,
        "allocated_bytes": allocated_bytes,
        "device_bytes": device_bytes,
        "ratio": reserved_bytes / allocated_bytes,
        "first_ms": times_ms[0],
        "median_ms": statistics.median(times_ms[WARM_UP:]),
        "slowest_ms": max(times_ms[WARM_UP:]),
        **counters(given.contender),
        "gpu": torch.cuda.get_device_name(),
        "driver": driver_version(),
        "torch": torch.__version__,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
