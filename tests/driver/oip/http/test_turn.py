"""Requests of a turn: when the first is kept, and when joining is tried again."""

import pytest

from tightship.driver.oip.http.turn import LEFT_OUT, TurnTarget
from tightship.driver.oip.joining_gain import RUNS_KEPT


@pytest.fixture
def target():
    return TurnTarget(None, 8)


def test_a_request_is_kept_only_behind_that_of_another_client(target):
    kept = [target.begins_turn(each) for each in "aabbab"]
    assert kept == [False, False, True, False, True, True]


def test_after_a_turn_of_one_request_some_begin_none(target):
    target.end_turn(2)
    assert [target.begins_turn(each) for each in "aba"] == [False, True, True]
    target.end_turn(1)
    clients = [number % 2 for number in range(LEFT_OUT + 2)]
    assert [target.begins_turn(each) for each in clients] == [False] * LEFT_OUT + [True] * 2


def test_requests_begin_no_turn_where_joining_does_not_pay(target):
    target.gain.note(100, 1)
    target.begins_turn(-1)
    assert target.begins_turn(0)
    for _ in range(RUNS_KEPT):
        target.gain.note(800, 8)
    assert not any(target.begins_turn(each) for each in range(1, 100))
