"""Runs of joined requests: errors of one, deadlines, and callers that leave."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from tests.driver.oip.joining import Setting, value
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.refusal import OipError
from tightship.errors import InputError
from tightship.model import Model


@pytest.fixture
def slow(monkeypatch):
    """Runs begin, and go on until they may end or are stopped."""
    begun, may_end, run = threading.Event(), threading.Event(), Model.run

    def slowly(model, inputs, *, stop, **options):
        begun.set()
        while not may_end.is_set() and not stop.is_set():
            time.sleep(0.001)
        return run(model, inputs, stop=stop, **options)

    monkeypatch.setattr(Model, "run", slowly)
    yield begun, may_end
    may_end.set()


def test_an_error_of_one_is_not_that_of_others(setting, sizes):
    setting.endpoint.permits.take_free()
    asked = [setting.ask(n, 9 if n == 1 else 0) for n in range(3)]
    setting.wait_for(3)
    setting.endpoint.permits.give_back()
    assert value(asked[0]) == [0]
    assert value(asked[2]) == [2]
    with pytest.raises(OipError):
        asked[1].result(30)
    assert sizes == [4, 1, 1, 1]
    assert setting.repository.counts("rows").fail_count == 1


def test_results_are_released_with_the_last_reader(setting):
    setting.endpoint.permits.take_free()
    asked = [setting.ask(n) for n in range(3)]
    setting.wait_for(3)
    gc.collect()
    gc.disable()  # so that nothing in a reference cycle goes
    try:
        setting.endpoint.permits.give_back()
        found = [each.result(30).outputs[0].array for each in asked]
        released = weakref.ref(found[0].base)
        assert all(each.base is released() for each in found)
        setting.threads.submit(int).result(30)
        del asked, found
        deadline = time.monotonic() + 30
        while released() is not None and time.monotonic() < deadline:
            time.sleep(0.001)  # threads that answer leave their frames
        assert released() is None
    finally:
        gc.enable()


def test_rows_are_those_of_single_runs_within_tolerance(tmp_path):
    setting = Setting(tmp_path, "max_batch_size: 8 dynamic_batching {}")
    model = setting.repository.served("rows").model
    setting.endpoint.permits.take_free()
    asked = [setting.ask(n / 3, n % 4) for n in range(8)]
    setting.wait_for(8)
    setting.endpoint.permits.give_back()
    for n, each in enumerate(asked):
        x = np.full((1, 16), n / 3, np.float32)
        alone = model.run({"x": x, "i": np.array([n % 4])})["y"]
        (output,) = each.result(30).outputs
        np.testing.assert_allclose(output.array, alone, rtol=1e-6)
    assert setting.repository.counts("rows").run_count == 1
    setting.close()


@pytest.mark.parametrize("who", [0, 1])
def test_a_caller_that_leaves_during_a_run_does_not_end_it(setting, slow, who):
    begun, may_end = slow
    callers = [Caller(setting.endpoint.permits) for _ in range(2)]
    setting.endpoint.permits.take_free()
    asked = [setting.ask(n + 1, caller=each) for n, each in enumerate(callers)]
    setting.wait_for(2)
    setting.endpoint.permits.give_back()
    assert begun.wait(30)
    callers[who].leave()
    time.sleep(0.05)
    assert not asked[1 - who].done()
    may_end.set()
    assert value(asked[1 - who]) == [2 - who]
    with pytest.raises(OipError, match="cancelled"):
        asked[who].result(30)


def test_a_run_ends_once_all_of_its_callers_have_left(setting, slow):
    begun, _ = slow
    callers = [Caller(setting.endpoint.permits) for _ in range(3)]
    setting.endpoint.permits.take_free()
    asked = [setting.ask(n, caller=each) for n, each in enumerate(callers)]
    setting.wait_for(3)
    setting.endpoint.permits.give_back()
    assert begun.wait(30)
    for each in callers:
        each.leave()
    for each in asked:
        with pytest.raises(OipError, match="cancelled"):
            each.result(30)
    assert setting.endpoint.permits.taken_count == 0


def test_tensors_of_a_request_that_was_given_up_are_not_read_again(setting, monkeypatch):
    sizes, begun, may_end, run = [], threading.Event(), threading.Event(), Model.run

    def failing(model, inputs, **options):
        sizes.append(len(inputs["x"]))
        if sizes == [2]:
            begun.set()
            assert may_end.wait(30)
            raise InputError("One of the requests is wrong.")
        return run(model, inputs, **options)

    monkeypatch.setattr(Model, "run", failing)
    gone = Caller(setting.endpoint.permits)
    setting.endpoint.permits.take_free()
    first = setting.ask(1)
    setting.wait_for(1)
    second = setting.ask(2, caller=gone)
    setting.wait_for(2)
    setting.endpoint.permits.give_back()
    assert begun.wait(30)
    gone.leave()
    with pytest.raises(OipError, match="cancelled"):
        second.result(30)
    may_end.set()
    assert value(first) == [1]
    assert sizes == [2, 1]
