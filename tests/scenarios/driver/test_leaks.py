"""Pools and buffers that come and go leave nothing in the driver."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.small_models import relu_chain
from tightship.driver.client import segment as segments
from tightship.driver.protocol import messages as m
from tightship.driver.types.pools import READ, PoolKind
from tightship.errors import DriverError

POOL_BYTES = 1 << 16
GROWTH = 1.02


def resident_bytes(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def register_and_use(client, model, count):
    shape = model.interface.inputs[0].dimensions
    for _ in range(count):
        with client.segment(POOL_BYTES) as segment:
            ends = [segment.place(shape, "f4")], [segment.place(shape, "f4")]
            model.execute(*ends)


def register(client, _, count):
    for _ in range(count):
        client.segment(POOL_BYTES).close()


def fail_to_register(client, _, count):
    file = os.memfd_create("not sealed")
    call = m.RegisterPool(PoolKind.ASHMEM, POOL_BYTES, READ, 0)
    for _ in range(count):
        with pytest.raises(DriverError):
            client._session.exchange(call, (file,))
    os.close(file)


def allocate(client, model, count):
    for _ in range(count):
        client.allocate(inputs=[(model, 0)]).close()


def check(folder, counts):
    with driver(folder) as running, running.client() as client:
        model = client.prepare(relu_chain(1, 1024))
        model.execute([np.ones(model.interface.inputs[0].dimensions, np.float32)])
        for what in counts:
            what(client, model, 500)
        before, resident = running.settled_state(client), resident_bytes(running.process)
        for what, count in counts.items():
            what(client, model, count)
        assert running.settles_at(before, client)
        assert resident_bytes(running.process) <= GROWTH * resident


def test_a_segment_that_cannot_be_mapped_leaves_nothing_in_the_driver(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with driver(tmp_path) as running, running.client() as client:
        before = running.settled_state(client)
        monkeypatch.setattr(segments.mmap, "mmap", refused)
        with pytest.raises(OSError, match="Cannot allocate"):
            client.segment(POOL_BYTES)
        monkeypatch.undo()
        assert running.settles_at(before, client)
        (own,) = client.inspect().clients
        assert not own.pools


def test_pools_and_buffers_that_come_and_go_leave_nothing(tmp_path):
    check(tmp_path, {register: 700, register_and_use: 300, fail_to_register: 200, allocate: 200})


@pytest.mark.slow
def test_a_hundred_thousand_pools_leave_nothing(tmp_path):
    check(
        tmp_path,
        {register: 100_000, register_and_use: 3000, fail_to_register: 10_000, allocate: 10_000},
    )
