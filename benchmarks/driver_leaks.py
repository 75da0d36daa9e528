"""What is left in a driver after many pools and buffers that came and went."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.driver_native import network
from benchmarks.record import ROOT

from tightship.driver import Client
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.rules.pools import READ, WRITE, PoolKind
from tightship.errors import DriverError

COUNTS = {"registered": 100_000, "refused": 10_000, "allocated": 10_000}
POOL_BYTES = 1 << 16


def state(process: int) -> tuple[int, int, int]:
    """Descriptors, mappings of clients' files, and resident bytes."""
    files = len(os.listdir(f"/proc/{process}/fd"))
    lines = Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines()
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return files, sum("memfd:" in line for line in lines), resident * 1024


def come_and_go(client: Client, model: object, counts: dict[str, int]) -> None:
    """Pools that are used, registrations that fail, buffers."""
    session = client._session
    file = os.memfd_create("leaks")
    os.ftruncate(file, POOL_BYTES)
    for _ in range(counts["registered"]):
        with client.segment(POOL_BYTES):
            pass
    for _ in range(counts["refused"]):
        try:
            session.expect(
                PoolRegistered,
                m.RegisterPool(PoolKind.ASHMEM, POOL_BYTES, READ | WRITE, 0),
                (file,),
            )
        except DriverError:
            continue
        raise AssertionError("A file that is not sealed was taken.")
    os.close(file)
    for _ in range(counts["allocated"]):
        client.allocate(inputs=[(model, 0)]).close()


def row(*, quick: bool) -> dict[str, object]:
    """What has grown, once everything was done for the first time."""
    part = 50 if quick else 1
    counts = {name: count // part for name, count in COUNTS.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "driver.sock"
        with subprocess.Popen(
            [sys.executable, "-m", "tightship.cli", "serve", "--socket", path],
            cwd=ROOT, stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            with Client(path) as client:
                model = client.prepare(network(4096, {"Relu": 1}))
                model.execute([np.ones(1024, np.float32)])
                come_and_go(client, model, {name: count // 50 for name, count in counts.items()})
                before, start = state(process.pid), time.perf_counter()
                come_and_go(client, model, counts)
                taken_s, after = time.perf_counter() - start, state(process.pid)
            process.terminate()
    return {
        **counts,
        "descriptors": after[0] - before[0],
        "mappings": after[1] - before[1],
        "resident_growth": round(after[2] / before[2] - 1, 4),
        "target_growth": 0.02,
        "seconds": round(taken_s, 1),
    }
