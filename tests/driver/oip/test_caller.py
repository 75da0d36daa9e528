"""A client of inferences: permits that it reserves, waits for and gives back, and its leaving."""

import pytest

from tightship._core import RequestMetrics, RunPermits
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.refusal import OipError


@pytest.fixture
def permits():
    return RunPermits(1)


def test_a_reserved_permit_is_that_of_the_next_inference(permits):
    caller = Caller(permits, "account", "client")
    assert caller.reserve()
    assert not Caller(permits).reserve()
    place = caller.take_permit("model", RequestMetrics(), 0.0)
    caller.release()  # nothing is left to give back
    assert not permits.is_free
    caller.give_back(place)
    assert permits.is_free


def test_a_permit_that_no_inference_used_is_given_back_once(permits):
    caller = Caller(permits)
    assert caller.reserve()
    caller.release()
    caller.release()
    assert permits.is_free
    assert permits.take_free()
    assert not permits.is_free


def test_who_has_left_gets_no_permit(permits):
    caller = Caller(permits)
    left = []
    with caller.noticing(lambda: left.append(True)):
        caller.leave()
    assert left == [True]
    with pytest.raises(OipError, match="the call was cancelled"):
        caller.take_permit("model", RequestMetrics(), None)
    assert permits.is_free


def test_who_waits_too_long_is_told(permits):
    assert permits.take_free()
    with pytest.raises(OipError, match="Request timeout expired"):
        Caller(permits).take_permit("model", RequestMetrics(), 0.01)
