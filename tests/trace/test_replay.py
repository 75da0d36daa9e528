import hypothesis.strategies as st
import pytest
from hypothesis import given

from tightship.resource import HostResource, LimitingResource, StatisticsResource
from tightship.resource.spec import DEFAULTS, resource_from
from tightship.trace.events import Event, Trace
from tightship.trace.replay import PARTS, ROUNDS, replay


@st.composite
def traces(draw):
    live, events, number = [], [], 0
    for _ in range(draw(st.integers(0, 60))):
        if live and draw(st.booleans()):
            events.append(Event(live.pop(draw(st.integers(0, len(live) - 1))), 0, False))
        else:
            number += 1
            live.append(number)
            events.append(Event(number, draw(st.integers(0, 10_000)), True))
    return Trace(tuple(events))


def peak_of(trace):
    sizes, live, peak = {}, 0, 0
    for event in trace.events:
        if event.is_allocation:
            sizes[event.number] = event.size_bytes
            live += event.size_bytes
        else:
            live -= sizes.pop(event.number)
        peak = max(peak, live)
    return peak


@given(traces())
def test_the_peak_is_that_of_the_trace_whatever_the_resource(trace):
    outcome = replay(trace, lambda: resource_from("pool:64KiB"))
    assert outcome.operation_count == len(trace.events)
    assert outcome.peak_live_bytes == peak_of(trace)
    assert outcome.peak_held_bytes >= outcome.peak_live_bytes
    assert outcome.refused_count == 0


@given(traces())
def test_every_block_comes_once_a_round_and_goes(trace):
    made = []

    def make():
        made.append(StatisticsResource(HostResource()))
        return made[-1]

    replay(trace, make)
    comes = sum(event.is_allocation for event in trace.events)
    rounds = [resource.counters().total_count for resource in made]
    assert rounds == [comes, (1 + ROUNDS) * comes]
    assert {resource.counters().current_count for resource in made} == {0}


def test_what_is_held_is_looked_at_after_each_allocation():
    trace = Trace((Event(1, 5000, True), Event(1, 0, False), Event(2, 100, True)))
    outcome = replay(trace, HostResource)
    assert outcome.peak_live_bytes == 5000
    assert outcome.peak_held_bytes == 8192
    assert outcome.held_ratio == 8192 / 5000
    assert outcome.fragmentation == 1 - 5000 / 8192


@given(traces())
def test_the_curves_reach_the_peaks_and_no_higher(trace):
    outcome = replay(trace, lambda: resource_from("pool:64KiB"))
    assert len(outcome.live_bytes) == len(outcome.held_bytes) == max(1, len(trace.events))
    assert max(outcome.live_bytes) == outcome.peak_live_bytes
    assert max(outcome.held_bytes) == outcome.peak_held_bytes
    assert all(a <= b for a, b in zip(outcome.live_bytes, outcome.held_bytes, strict=True))


def test_what_is_held_falls_where_blocks_go_back_to_the_system():
    trace = Trace((Event(1, 5000, True), Event(2, 100, True), Event(1, 0, False)))
    outcome = replay(trace, HostResource)
    assert outcome.held_bytes == (8192, 12288, 4096)
    assert outcome.live_bytes == (5000, 5100, 100)


def test_an_allocation_within_a_part_is_seen_where_it_goes_before_the_end_of_the_part():
    pair = (Event(1, 10, True), Event(1, 0, False))
    outcome = replay(Trace(pair * PARTS), HostResource)
    assert outcome.held_bytes == (4096,) * PARTS
    assert outcome.live_bytes == (10,) * PARTS
    assert outcome.peak_held_bytes == 4096


def test_many_events_share_the_parts_of_a_curve():
    events = [Event(number, 10, True) for number in range(1, 1001)]
    outcome = replay(Trace(tuple(events)), HostResource)
    assert len(outcome.live_bytes) == len(outcome.held_bytes) == PARTS
    assert outcome.live_bytes[-1] == 10_000
    assert list(outcome.live_bytes) == sorted(outcome.live_bytes)


def test_a_refused_block_is_counted_and_neither_live_nor_given_back():
    trace = Trace((Event(1, 900, True), Event(2, 200, True), Event(2, 0, False)))
    outcome = replay(trace, lambda: LimitingResource(HostResource(), 1000))
    assert outcome.refused_count == 1
    assert outcome.peak_live_bytes == 900


def test_a_number_may_be_given_again():
    trace = Trace((Event(7, 10, True), Event(7, 0, False), Event(7, 20, True)))
    assert replay(trace, HostResource).peak_live_bytes == 20


def test_an_empty_trace_has_no_peaks():
    outcome = replay(Trace(()), HostResource)
    assert (outcome.peak_live_bytes, outcome.held_ratio, outcome.fragmentation) == (0, 1, 0)


@pytest.mark.parametrize("spec", DEFAULTS)
def test_every_default_replays(spec):
    trace = Trace((Event(1, 100, True), Event(2, 1 << 20, True), Event(1, 0, False)))
    outcome = replay(trace, lambda: resource_from(spec))
    assert outcome.peak_live_bytes == (1 << 20) + 100
    assert outcome.refused_count == 0
