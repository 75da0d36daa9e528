"""The decision to join requests, by the times of runs."""

import pytest

from tightship.driver.oip.joining_gain import RUNS_KEPT, WORTH_NS, JoiningGain


def test_requests_are_joined_until_it_is_known_what_that_takes():
    gain = JoiningGain()
    assert gain.pays
    gain.note(1000 * WORTH_NS, 8)
    assert gain.pays


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
    gain.note(alone_ns, 1)
    gain.note(8 * joined_ns, 8)
    assert gain.pays == pays


def test_the_shortest_of_the_last_runs_decides():
    gain = JoiningGain()
    gain.note(WORTH_NS // 2, 1)
    for _ in range(RUNS_KEPT - 1):
        gain.note(1000 * WORTH_NS, 1)
    assert not gain.pays
    gain.note(1000 * WORTH_NS, 1)
    assert gain.pays
    gain.note(8 * 1000 * WORTH_NS, 8)  # the first joined run is also planned
    gain.note(8 * WORTH_NS, 8)
    assert gain.pays
