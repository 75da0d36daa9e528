"""Limits on the calls of clients: how many in a time, and when again."""

import pytest

from tests.at_once import at_once
from tightship.driver.oip.admission import rates as module
from tightship.driver.oip.admission.rates import ByteLimits, RateLimits, account_of


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the limits see; a test adds to them."""
    found = [1000.0]
    monkeypatch.setattr(module, "monotonic", lambda: found[0])
    return found


def admitted(limits, client, count):
    return sum(limits.take(client) is None for _ in range(count))


def test_a_client_may_make_so_many_calls_at_once_and_then_each_after_its_time(clock):
    limits = RateLimits([(4, 1)])
    assert admitted(limits, "one", 10) == 4
    assert admitted(limits, "two", 10) == 4
    wait = limits.take("one")
    assert wait.reason == "more than 4 calls a second"
    assert wait.seconds == pytest.approx(0.25)
    clock[0] += 0.25
    assert admitted(limits, "one", 10) == 1
    clock[0] += 0.5
    assert admitted(limits, "one", 10) == 2
    clock[0] += 3600
    assert admitted(limits, "one", 10) == 4  # unused time is not saved


def test_of_several_rates_each_holds_and_refused_calls_count_for_none(clock):
    limits = RateLimits([(2, 1), (5, 3600)])
    assert admitted(limits, "one", 10) == 2
    clock[0] += 1
    assert admitted(limits, "one", 100) == 2
    clock[0] += 1
    assert admitted(limits, "one", 100) == 1
    wait = limits.take("one")
    assert wait.reason == "more than 5 calls an hour"
    assert wait.seconds == pytest.approx(720 - 2)
    clock[0] += wait.seconds
    assert admitted(limits, "one", 10) == 1


def test_what_calls_exceed_a_rate_of_bytes_by_delays_the_next_ones(clock):
    limits = ByteLimits([(1000, 1), (10_000, 3600)])
    limits.spend("one", 900)
    assert limits.wait("one") is None
    limits.spend("one", 1100)
    wait = limits.wait("one")
    assert wait.reason == "calls of more than 1000 bytes a second"
    assert wait.seconds == pytest.approx(1.0)
    assert limits.wait("two") is None
    clock[0] += 1.0
    assert limits.wait("one") is None
    limits.spend("one", 9000)
    clock[0] += 60
    wait = limits.wait("one")
    assert wait.reason == "calls of more than 10000 bytes an hour"
    assert wait.seconds == pytest.approx(1000 * 0.36 - 61)


@pytest.mark.parametrize("rate", [(999_999_999, 1), (999_999_999, 86_400), (1, 86_400)])
def test_extreme_rates_hold(clock, rate):
    limits = RateLimits([rate])
    clock[0] += 1e8
    assert admitted(limits, "one", 3) == min(rate[0], 3)


def test_memory_is_bounded_and_the_client_of_long_ago_is_forgotten(clock, monkeypatch):
    monkeypatch.setattr(module, "CLIENTS_MAX", 10)
    limits = RateLimits([(1, 3600)])
    for number in range(100):
        assert admitted(limits, f"client-{number}", 2) == 1
    assert len(limits._buckets._full_s) == 10
    assert admitted(limits, "client-99", 1) == 0
    assert clock == [1000.0]


def test_threads_together_get_no_more_calls(clock):
    limits = RateLimits([(50, 3600)])
    counts = at_once(lambda _: admitted(limits, "one", 40), range(4))
    assert sum(counts) == 50
    assert clock == [1000.0]


@pytest.mark.parametrize(
    ("address", "account"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:ffff:ffff:ffff", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ("gone", "gone"),
    ],
)
def test_a_client_counts_by_its_address_or_its_network(address, account):
    assert account_of(address) == account
