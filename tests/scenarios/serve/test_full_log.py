"""A disk that is full takes no log; the server goes on, and ends as it otherwise does."""

import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.serve_process import PATIENCE_S, serve_neg

CALLS = 150
"""Calls whose lines, of some 300 bytes each, are more than the buffers of a file hold."""


def test_a_server_whose_log_cannot_be_written_goes_on(tmp_path):
    options = ("--log", "info", "--log-format", "json")  # a line for each call
    with serve_neg(tmp_path, *options, before="exec 2>/dev/full") as server:
        for _ in range(CALLS):
            assert server.get("/v2/health/ready")[0] == 200
        held = server.anonymous_bytes
        for _ in range(CALLS):
            assert server.get("/v2/models/other")[0] == 404
        assert server.anonymous_bytes < held + (1 << 20)  # lines are not kept either
        server.process.terminate()
        server.process.terminate()
        assert server.process.wait(PATIENCE_S) == 0
