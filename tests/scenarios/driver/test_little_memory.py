"""A driver that the system gives no more memory refuses, goes on, and serves when it has some."""

import resource
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.small_models import dense, dense_result
from tightship._core import HAS_ONEDNN
from tightship.driver.memory.reserve import RESERVE_BYTES
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

MODEL, WEIGHTS = dense(batch=4)
X = np.ones((4, 32), np.float32)
CALLS_MAX = 10


def data_bytes(pid):
    """Return the bytes of a process that `RLIMIT_DATA` counts."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmData:")).split()[1]) << 10


def limit(pid, size_bytes):
    hard = resource.prlimit(pid, resource.RLIMIT_DATA)[1]
    resource.prlimit(pid, resource.RLIMIT_DATA, (size_bytes, hard))


@pytest.mark.skipif(not HAS_ONEDNN, reason="built without oneDNN")
@pytest.mark.parametrize("more_bytes", [-(1 << 19), 0, 300 << 10, 1 << 20])
def test_a_driver_without_memory_refuses_and_goes_on(tmp_path, more_bytes):
    with driver(tmp_path) as running, running.client() as client:
        pid = running.process.pid
        model = client.prepare(MODEL)
        limit(pid, data_bytes(pid) + RESERVE_BYTES + more_bytes)
        refused = []
        for _ in range(CALLS_MAX):  # no thread starts, no primitive is described
            try:
                client.prepare(dense(batch=4, hidden=72)[0])
            except DriverError as error:
                refused.append(error.status)
            np.testing.assert_allclose(model.execute([X])[0], dense_result(X, WEIGHTS), 1e-3)
        assert set(refused) == {ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT}
        limit(pid, resource.RLIM_INFINITY)
        np.testing.assert_allclose(
            client.prepare(MODEL).execute([X])[0], dense_result(X, WEIGHTS), 1e-3
        )


@pytest.mark.skipif(not HAS_ONEDNN, reason="built without oneDNN")
@pytest.mark.parametrize("more_bytes", [0, RESERVE_BYTES])
def test_a_driver_whose_clients_keep_as_much_as_they_can_goes_on(tmp_path, more_bytes):
    with driver(tmp_path) as running, running.client() as client:
        pid = running.process.pid
        model = client.prepare(MODEL)
        model.execute([X])
        limit(pid, data_bytes(pid) + more_bytes)
        kept, refused = [], []
        for number in range(CALLS_MAX * 40):
            grow = (running.client, client.inspect, partial(client.segment, 4096))[number % 3]
            try:
                kept.append(grow())
            except DriverError as error:
                refused.append(error.status)
            if number % CALLS_MAX == 0:
                np.testing.assert_allclose(model.execute([X])[0], dense_result(X, WEIGHTS), 1e-3)
        limit(pid, resource.RLIM_INFINITY)
        assert set(refused) == {ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT}
        assert client.inspect().clients
        for each in kept:
            if hasattr(each, "close"):
                each.close()
