"""Resources left in a driver after many pools and buffers that came and went, and a dead client."""

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
from tightship.driver.types.pools import READ, WRITE, PoolKind
from tightship.errors import DriverError

COUNTS = {"registered": 100_000, "refused": 10_000, "allocated": 10_000}
POOL_BYTES = 1 << 16
DEAD_BYTES = 16 << 20
DEATHS = 10


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


DOOMED = """
import signal, sys
import numpy as np
from benchmarks.driver_native import network
from tightship.driver import Client
client = Client(sys.argv[1])
model = client.prepare(network(int(sys.argv[2]), {"Relu": 1}))
shape = model.interface.inputs[0].dimensions
segment = client.segment(2 * int(sys.argv[2]))
ends = [segment.place(shape, "f4")], [segment.place(shape, "f4")]
ends[0][0].array[...] = 1
model.execute(*ends)
buffer = client.allocate(inputs=[(model, 0)])
buffer.copy_from(np.ones(shape, np.float32))
print(flush=True)
signal.pause()
"""
"""A client with two thirds of its memory in a segment and one in a buffer."""


def back_ms(path: Path, driver: int) -> float:
    """Time from a client's death until its driver holds no more than before it came."""
    before = state(driver)
    with subprocess.Popen(
        [sys.executable, "-c", DOOMED, path, str(DEAD_BYTES)], cwd=ROOT, stdout=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        client.stdout.readline()
        assert state(driver)[2] > before[2] + 2 * DEAD_BYTES
        client.kill()
        start = time.perf_counter()
        while True:
            files, mapped, resident = state(driver)
            if (files, mapped) <= before[:2] and resident < before[2] + DEAD_BYTES // 8:
                return 1e3 * (time.perf_counter() - start)


def row(*, quick: bool) -> dict[str, object]:
    """Return the growth after everything was done for the first time."""
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
            back_ms(path, process.pid)  # what stays after the first one, stays
            dead_ms = sorted(back_ms(path, process.pid) for _ in range(DEATHS))
            process.terminate()
    return {
        **counts,
        "descriptors": after[0] - before[0],
        "mappings": after[1] - before[1],
        "resident_growth": round(after[2] / before[2] - 1, 4),
        "target_growth": 0.02,
        "seconds": round(taken_s, 1),
        "ms until a dead client's memory is back, median": round(dead_ms[DEATHS // 2], 1),
        "ms until a dead client's memory is back, longest": round(dead_ms[-1], 1),
        "target_ms": 100,
    }
