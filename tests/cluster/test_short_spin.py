"""Most of a wait is slept, and never much more than the shortest of the last ones."""

import pytest

from tightship.cluster import short_spin
from tightship.cluster.short_spin import LOOKED_BACK, SLEPT_SHARE, ShortSpin


class Clock:
    """Clock of a test: results are there `takes` after a wait begins, which spins until then."""

    def __init__(self):
        self.now, self.slept, self.takes, self.started = 0.0, 0.0, 0.0, 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.started, self.slept = self.now, seconds
        self.now += seconds

    def wait(self):
        self.now = max(self.now, self.started + self.takes)
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(short_spin, "time", found)
    return found


def waited(spin, clock, takes):
    clock.takes = takes
    start = clock.now
    spin.result(clock.wait)
    return clock.now - start


def test_equal_waits_are_slept_but_for_a_fifth(clock):
    spin = ShortSpin()
    for _ in range(LOOKED_BACK):
        assert waited(spin, clock, 10.0) == 10.0
        assert clock.slept == 0.0
    assert waited(spin, clock, 10.0) == 10.0
    assert clock.slept == SLEPT_SHARE * 10.0


def test_a_shorter_wait_ends_late_once_and_shortens_the_next(clock):
    spin = ShortSpin()
    for _ in range(2 * LOOKED_BACK):
        waited(spin, clock, 10.0)
    late = [waited(spin, clock, 1.0) for _ in range(12)]
    assert late[0] == SLEPT_SHARE * 10.0
    assert late == sorted(late, reverse=True)
    assert late[-1] == 1.0


def test_one_result_that_was_there_already_ends_all_sleep(clock):
    spin = ShortSpin()
    for _ in range(LOOKED_BACK):
        waited(spin, clock, 10.0)
    spin._waits.append(0.0)
    assert waited(spin, clock, 10.0) == 10.0
    assert clock.slept == 0.0
