"""Clients of HTTP that hang up while they wait for a turn, in this process."""

import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.http_setting import Serving, ask
from tests.driver.test_run_permits import until

REPEATED = 4
"""The last of so many requests is a repeated run."""


@pytest.fixture
def serving(tmp_path, monkeypatch):
    made = Serving(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("runs", [0, 1, REPEATED], ids=["new", "quick", "repeated"])
def test_who_hangs_up_while_waiting_for_a_permit_has_none(serving, runs):
    with serving.connected() as client:
        for _ in range(runs):
            assert ask(client, serving.request())[0] == 200
        assert serving.endpoint.permits.take_free()
        client.sendall(serving.request())
        until(lambda: serving.count().pending_count == 1)
    until(lambda: serving.count().fail_count == 1)
    assert serving.count().pending_count == 0
    serving.endpoint.permits.give_back()
    assert serving.endpoint.permits.is_free
    assert serving.count().success_count == runs
