"""The decision to join requests, by the times of runs."""

import pytest

from tightship.driver.oip.joining_gain import RUNS_KEPT, TRIED_AGAIN, WORTH_NS, JoiningGain


def test_requests_are_joined_until_it_is_known_what_that_takes():
    gain = JoiningGain()
    assert gain.pays
    gain.note(1000 * WORTH_NS, 8)
    assert gain.pays


def noted(gain, *, alone_ns=(), joined_ns=()):
    """Note runs of one request, then runs of eight by the time of each request."""
    for each in alone_ns:
        gain.note(each, 1)
    for each in joined_ns:
        gain.note(8 * each, 8)


@pytest.mark.parametrize(
    ("alone_ns", "joined_ns", "pays"),
    [
        (WORTH_NS - 1, 0, False),
        (WORTH_NS, WORTH_NS // 2, True),
        (100 * WORTH_NS, 99 * WORTH_NS, False),
        (100 * WORTH_NS, 101 * WORTH_NS, False),
        (100 * WORTH_NS, 60 * WORTH_NS, True),
    ],
)
def test_a_joined_request_must_take_less_of_a_run_that_is_worth_it(alone_ns, joined_ns, pays):
    gain = JoiningGain()
    noted(gain, alone_ns=[alone_ns], joined_ns=[joined_ns] * RUNS_KEPT)
    assert gain.pays == pays


def test_the_first_joined_runs_which_are_also_planned_do_not_decide():
    gain = JoiningGain()
    noted(gain, alone_ns=[2 * WORTH_NS], joined_ns=[1000 * WORTH_NS] * (RUNS_KEPT - 1))
    assert gain.pays
    noted(gain, joined_ns=[WORTH_NS])
    assert gain.pays


def test_the_shortest_of_the_last_runs_decides():
    gain = JoiningGain()
    noted(gain, alone_ns=[WORTH_NS // 2, *[1000 * WORTH_NS] * (RUNS_KEPT - 1)])
    assert not gain.pays
    noted(gain, alone_ns=[1000 * WORTH_NS])
    assert gain.pays


def test_joining_that_other_work_made_slow_is_tried_again_and_less_often_each_time():
    gain, slow = JoiningGain(), [200 * WORTH_NS] * RUNS_KEPT
    noted(gain, alone_ns=[100 * WORTH_NS], joined_ns=slow)
    for attempt in range(3):
        noted(gain, alone_ns=[100 * WORTH_NS] * (2**attempt * TRIED_AGAIN - 1))
        assert not gain.pays
        noted(gain, alone_ns=[100 * WORTH_NS])
        assert gain.pays
        noted(gain, joined_ns=slow)
        assert not gain.pays
    noted(gain, alone_ns=[100 * WORTH_NS] * (8 * TRIED_AGAIN))
    noted(gain, joined_ns=[50 * WORTH_NS] * RUNS_KEPT)
    assert gain.pays


def test_runs_of_any_duration_can_be_worth_it():
    gain = JoiningGain(0)
    noted(gain, alone_ns=[WORTH_NS // 100], joined_ns=[WORTH_NS // 200] * RUNS_KEPT)
    assert gain.pays
    noted(gain, joined_ns=[WORTH_NS // 100] * RUNS_KEPT)
    assert not gain.pays
