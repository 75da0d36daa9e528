"""A disk that is full takes no log and no cache; the server goes on, and ends as otherwise."""

import subprocess
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.serve_process import LENGTH, PATIENCE_S, serve_neg

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


@contextmanager
def full_disk(folder):
    """A file system of 64 KiB without room; only root may make one."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(OSError, match="No space left"):
            (folder / "rest").write_bytes(bytes(1 << 17))
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_server_whose_caches_cannot_be_written_loads_and_answers(tmp_path):
    with full_disk(tmp_path / "full") as folder:
        before = f'export XDG_CACHE_HOME="{folder}" TMPDIR="{folder}"'
        with serve_neg(tmp_path, before=before) as server:
            for _ in range(2):
                assert server.post("/v2/repository/models/neg/load", {})[0] == 200
            tensor = {"name": "x", "shape": [LENGTH], "datatype": "FP32", "data": [2.0] * LENGTH}
            status, said = server.post("/v2/models/neg/infer", {"inputs": [tensor]})
            assert status == 200
            assert np.all(np.array(said["outputs"][0]["data"]) == -2.0)
            server.process.terminate()
            server.process.terminate()
            assert server.process.wait(PATIENCE_S) == 0
