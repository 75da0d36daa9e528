"""The memory of a client that is killed is back once its driver has seen that it is gone."""

import os
import select
import subprocess
import sys

import pytest

from tests.driver.doomed_client import VALUE_BYTES
from tests.driver.native_driver import driver
from tests.scenarios.driver.test_leaks import resident_bytes

PATIENCE_MS = 60_000
NOISE_BYTES = 8 << 20


@pytest.fixture
def served(tmp_path):
    with driver(tmp_path) as running:
        yield running


def start_doomed(served):
    """A client that holds much, and a pipe that only it and its driver read."""
    fence, held = os.pipe()
    command = [sys.executable, "-m", "tests.driver.doomed_client", served.path, str(fence)]
    process = subprocess.Popen(command, pass_fds=(fence,), stdout=subprocess.PIPE)
    os.close(fence)
    assert process.stdout.readline() == b"ready\n"
    return process, held


def kill(process, held):
    """Kill a client, and wait until its driver has dropped the calls that it waited for."""
    hang_up = select.poll()
    hang_up.register(
        held, 0
    )  # an error is reported in any case, because no client can read any more
    process.kill()
    process.wait()
    process.stdout.close()
    ((_, event),) = hang_up.poll(PATIENCE_MS)
    assert event & select.POLLERR
    os.close(held)


def test_what_a_killed_client_had_is_back_when_it_is_known_to_be_gone(served):
    with served.client() as witness:
        kill(*start_doomed(served))  # the driver has done all of it once
        before = served.settled_state(witness)
        resident = resident_bytes(served.process)
        process, held = start_doomed(served)
        assert resident_bytes(served.process) > resident + 3 * VALUE_BYTES - NOISE_BYTES
        kill(process, held)
        (own,) = witness.inspect().clients  # behind the end of the other
        assert not own.pools
        assert resident_bytes(served.process) < resident + NOISE_BYTES
        assert served.settles_at(before, witness)
