"""A process that does a workload with one allocator, and prints what that took."""

import argparse
import json
import statistics
import time

import torch
from benchmarks.gpu.workloads import WORKLOADS

from tightship.plug import pools
from tightship.plug import torch as plug
from tightship.quantity import parse_bytes

WARM_UP = 10


def peaks(contender: str) -> tuple[int, int]:
    """The most bytes that were reserved and allocated."""
    if not contender.startswith("tightship"):
        return torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
    stats = plug.memory_stats(torch.cuda.current_device())
    return stats["reserved_bytes.all.peak"], stats["allocated_bytes.all.peak"]


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
    iterate, times_ms = WORKLOADS[given.workload](), []
    for _ in range(WARM_UP + given.iterations):
        start = time.perf_counter()
        iterate()
        torch.cuda.synchronize()
        times_ms.append(1e3 * (time.perf_counter() - start))
    reserved_bytes, allocated_bytes = peaks(given.contender)
    figures = {
        "reserved_bytes": reserved_bytes,
        "allocated_bytes": allocated_bytes,
        "ratio": reserved_bytes / allocated_bytes,
        "median_ms": statistics.median(times_ms[WARM_UP:]),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
