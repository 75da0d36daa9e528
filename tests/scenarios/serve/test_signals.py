"""Signals that do not interrupt the thread that waits for clients."""

import ctypes
import os
import signal
import time

import pytest

pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.served import server

QUIET_S = 8
"""Time after which nothing is due in a server without calls, so that its wait has no end."""


def test_a_signal_that_another_thread_gets_ends_the_server():
    """Such a signal is like one right before the wait: Python only notes it, and waits on."""
    with server("one") as served:
        time.sleep(QUIET_S)
        number = served.process.pid
        threads = [int(each) for each in os.listdir(f"/proc/{number}/task")]
        for thread in threads:
            if thread != number:
                ctypes.CDLL(None).tgkill(number, thread, signal.SIGTERM)
        assert served.process.wait(20) == 0
