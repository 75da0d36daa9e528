"""Requests that wait: which are joined, and which are left out."""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic_ns

import pytest

from tests.driver.oip.joining import BATCHING, Setting, value
from tightship._core import RequestMetrics
from tightship.driver.oip import batch_queue
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.refusal import OipError


def test_requests_that_wait_are_run_at_once(setting, sizes):
    setting.endpoint.permits.take_free()
    asked = [setting.ask([n] * (1 + n % 3), n % 4) for n in range(6)]
    setting.wait_for(6)
    setting.endpoint.permits.give_back()
    for n, each in enumerate(asked):
        assert value(each) == [n * (n % 4 + 1)] * (1 + n % 3)
    assert len(sizes) == 2
    assert set(sizes) <= {4, 8}
    assert setting.endpoint.permits.taken_count == 0
    counts = setting.repository.counts("rows")
    assert (counts.success_count, counts.run_count) == (6, 2)
    (said,) = setting.endpoint.statistics("rows")["model_stats"]
    assert (said["inference_count"], said["execution_count"]) == (6, 2)


def test_the_first_plan_is_that_of_the_largest_batch_and_is_limited(tmp_path):
    setting = Setting(tmp_path)
    served = setting.repository.served("rows")
    assert served.model.input_types["x"][1] == (8, 16)
    limit = f"{served.model.plan.peak_bytes - 1}"
    parameter = f'"parameters": {{"max_memory": {{"string_value": "{limit}"}}}}'
    config = f'{{"max_batch_size": 8, "dynamic_batching": {{}}, {parameter}}}'
    with pytest.raises(OipError, match="more than the limit"):
        setting.repository.load("rows", config)
    assert setting.repository.served("rows") is served
    setting.close()


def test_a_caller_that_has_a_permit_is_not_joined(setting, sizes):
    """The thread of the connections answers it, where it must not wait for others."""
    caller = Caller(setting.endpoint.permits)
    assert caller.reserve()
    waiting = setting.ask(1)
    setting.wait_for(1)
    assert value(setting.ask(2, caller=caller)) == [2]
    assert value(waiting) == [1]
    assert sizes == [1, 1]


def test_a_request_that_does_not_fit_waits_for_none(setting):
    setting.endpoint.permits.take_free()
    with pytest.raises(OipError, match="batch-size must be <= 8"):
        setting.ask(range(9)).result(30)
    setting.endpoint.permits.give_back()


def test_callers_that_leave_or_are_late_are_left_out(setting, sizes):
    setting.endpoint.permits.take_free()
    gone = Caller(setting.endpoint.permits)
    asked = [setting.ask(1, caller=gone), setting.ask(2, timeout_s=0.1), setting.ask(3)]
    setting.wait_for(3)
    gone.leave()
    with pytest.raises(OipError, match="cancelled"):
        asked[0].result(30)
    with pytest.raises(OipError, match="timeout expired"):
        asked[1].result(30)
    setting.endpoint.permits.give_back()
    assert value(asked[2]) == [3]
    assert sizes == [1]


def test_a_delay_waits_for_a_full_batch(tmp_path, sizes):
    setting = Setting(
        tmp_path,
        "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 20000000 }",
    )
    asked = [setting.ask(n) for n in range(4)]
    assert [value(each) for each in asked] == [[0], [1], [2], [3]]
    assert sizes == [4]
    setting.close()


def test_a_delay_that_is_over_runs_what_there_is(tmp_path, sizes):
    setting = Setting(
        tmp_path, "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 1000 }"
    )
    assert value(setting.ask(5)) == [5]
    assert sizes == [1]
    setting.close()


def joined(setting, numbers):
    """Have requests joined, and have the clients of a joined run waited for without an end."""
    setting.endpoint.permits.take_free()
    asked = [setting.ask(n) for n in numbers]
    setting.wait_for(len(numbers))
    setting.endpoint.permits.give_back()
    assert [value(each) for each in asked] == [[n] for n in numbers]


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(batch_queue, "RETURN", 1e9)


@pytest.mark.usefixtures("patience")
def test_clients_of_a_joined_run_are_waited_for(setting, sizes):
    joined(setting, range(3))
    for _ in range(2):
        asked = [setting.ask(n) for n in range(3)]
        assert [value(each) for each in asked] == [[0], [1], [2]]
    assert sizes == [4, 4, 4]


def test_a_client_that_does_not_come_again_is_waited_for_once(setting, sizes, monkeypatch):
    monkeypatch.setattr(batch_queue, "RETURN", 1e-9)
    joined(setting, range(3))
    assert value(setting.ask(5)) == [5]
    monkeypatch.setattr(batch_queue, "RETURN", 1e9)
    assert value(setting.ask(6)) == [6]
    assert value(setting.ask(7)) == [7]  # as the last run had one client, none is waited for
    assert sizes == [4, 1, 1, 1]


@pytest.mark.usefixtures("patience")
def test_clients_are_not_waited_for_while_another_model_waits(setting, sizes):
    joined(setting, range(2))
    permits, metrics = setting.endpoint.permits, RequestMetrics()

    def take():
        permits.give_back(Caller(permits).take_permit("other", metrics, 30.0))

    permits.take_free()
    others = [setting.threads.submit(take) for _ in range(2)]  # the model is between these
    asked = setting.ask(4)
    setting.wait_for(3)
    permits.give_back()
    assert value(asked) == [4]
    for each in others:
        each.result(30)
    assert sizes == [2, 1]


@pytest.mark.usefixtures("patience")
def test_a_late_request_waits_for_no_other_client(setting):
    joined(setting, range(2))
    with pytest.raises(OipError, match="timeout expired"):
        setting.ask(1, timeout_s=0.05).result(30)


def test_many_callers_get_their_own_rows(setting):
    def go(number):
        for step in range(30):
            caller = Caller(setting.endpoint.permits, account=str(number % 3))
            assert value(setting.ask([number, step], number % 4, caller)) == [
                number * (number % 4 + 1),
                step * (number % 4 + 1),
            ]

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(go, range(8)))
    assert setting.endpoint.permits.taken_count == 0
    assert setting.endpoint.permits.waiting_count == 0


@pytest.mark.parametrize("config", [BATCHING, "max_batch_size: 8"])
def test_what_an_inference_took_is_without_its_wait(tmp_path, config):
    setting = Setting(tmp_path, config)
    permits, began = setting.endpoint.permits, monotonic_ns()
    permits.take_free()
    asked = setting.ask(1)
    setting.wait_for(1)
    waits, wait_ns = monotonic_ns(), 1_000_000
    while monotonic_ns() < waits + wait_ns:
        pass
    permits.give_back()
    assert value(asked) == [1]
    assert 0 < asked.result().took_ns <= monotonic_ns() - began - wait_ns
    setting.close()
