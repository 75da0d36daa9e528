"""`tightship pools`: a driver in another process is asked who holds what."""

import json
from contextlib import ExitStack

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.small_models import dense
from tightship.cli import main
from tightship.cli.pools_command import lines
from tightship.driver.types.snapshot import (
    BufferShare,
    Caller,
    Holdings,
    ModelShare,
    PoolShare,
    Snapshot,
)

MODEL, _ = dense(batch=4)
PAGES = 64 << 12


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pools")
    (folder / "dense.onnx").write_bytes(MODEL)
    with driver(folder, folder / "dense.onnx") as running:
        yield running


def asked(capsys, *options):
    assert main(["pools", *options]) == 0
    return capsys.readouterr().out


def test_a_client_is_charged_what_it_has(served, capsys):
    with served.client() as client, client.segment(PAGES) as segment:
        model = client.prepare(MODEL)
        buffer = client.allocate(inputs=[(model, 0)])
        placed = segment.place((4, 32), "f4")
        model.execute([placed])  # so that the driver has it mapped
        said = json.loads(asked(capsys, "--json", "--socket", str(served.path)))
    assert said["driver"]["caller"]["pid"] == served.process.pid
    assert [each["name"] for each in said["driver"]["models"]] == ["dense"]
    assert said["driver"]["total_bytes"] > 0
    mine = max(said["clients"], key=lambda each: each["pss_bytes"])
    assert PAGES in [pool["size_bytes"] for pool in mine["pools"]]
    assert 4096 // 2 <= mine["pss_bytes"] <= PAGES  # a page that two processes have mapped
    assert [each["token"] for each in mine["buffers"]] == [buffer.token]
    assert mine["buffer_bytes"] == 4 * 32 * 4
    assert mine["weights_bytes"] >= said["driver"]["weights_bytes"]
    assert mine["total_bytes"] == (mine["pss_bytes"] + mine["buffer_bytes"] + mine["weights_bytes"])
    assert np.array(placed.array).size


def test_clients_that_run_alternately_take_one_arena(served):
    with ExitStack() as stack:
        clients = [stack.enter_context(served.client()) for _ in range(4)]
        data, _ = dense(batch=512, hidden=256)
        models = [client.prepare(data) for client in clients]
        for model in models:
            model.execute([np.zeros((512, 32), np.float32)])
        snapshot = clients[0].inspect()
        (one,) = {share.arena_bytes for each in snapshot.clients for share in each.models}
        assert len(snapshot.clients) == 4
        assert one <= snapshot.arena_bytes < 2 * one


def test_it_finds_the_driver_by_itself(served, capsys, monkeypatch, tmp_path):
    (tmp_path / "tightship").mkdir(mode=0o700)
    (tmp_path / "tightship" / "driver.sock").symlink_to(served.path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert f"pid {served.process.pid}" in asked(capsys)


def test_without_a_driver_it_says_so(tmp_path, capsys):
    assert main(["pools", "--socket", str(tmp_path / "none")]) == 2
    assert "tightship serve" in capsys.readouterr().err


def test_a_crowd_fits_the_screen():
    caller = Caller(2**40, 2**31, 2**22, "a program of a long name")
    many = Holdings(
        caller,
        False,
        (PoolShare(2**62, "hardware_buffer_blob", "isolated", 2**50, False, 2**50),),
        (BufferShare(2**31 - 1, 2**50, is_filled=True),),
        (ModelShare(2**62, "m" * 255, 2**50, 2**50),),
    )
    snapshot = Snapshot(many, (many,) * 3, 2**50, 2**50)
    assert max(map(len, lines(snapshot))) <= 100
