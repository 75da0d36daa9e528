from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.trace.test_replay import traces
from tightship.errors import InputError
from tightship.resource import CompositeResource, HostResource
from tightship.resource.settings import settings_from
from tightship.trace.events import Event, Trace
from tightship.trace.replay import replay
from tightship.trace.workload import CANDIDATES, Division, compare, recommend, slab_classes

PAGE, WORD = 4096, 64


def live_at_once(sizes):
    return Trace(tuple(Event(number, size, True) for number, size in enumerate(sizes, 1)))


@st.composite
def small_traces(draw):
    """Blocks of four sizes that come and go."""
    live, events, number = [], [], 0
    sizes = draw(st.lists(st.sampled_from(CANDIDATES), min_size=1, max_size=4, unique=True))
    for _ in range(draw(st.integers(1, 40))):
        if live and draw(st.booleans()):
            events.append(Event(live.pop(draw(st.integers(0, len(live) - 1))), 0, False))
        for _ in range(draw(st.sampled_from([1, 60, 70]))):
            number += 1
            live.append(number)
            events.append(Event(number, draw(st.sampled_from(sizes)), True))
    return Trace(tuple(events))


def peak_counts(trace, cuts):
    """The most blocks live at once in each `(below, to]` of sizes."""
    live, now, peak = {}, dict.fromkeys(cuts, 0), dict.fromkeys(cuts, 0)
    for event in trace.events:
        if event.is_allocation:
            live[event.number] = next(c for c in cuts if event.size_bytes <= c)
        cut = live[event.number]
        now[cut] += 1 if event.is_allocation else -1
        peak[cut] = max(peak[cut], now[cut])
    return peak


def cost(peaks):
    return sum(-(-count // WORD) * WORD * size + PAGE for size, count in peaks.items() if count)


@settings(max_examples=10, deadline=None)
@given(small_traces())
def test_no_other_cut_of_the_sizes_costs_less(trace):
    requested = sorted({event.size_bytes for event in trace.events if event.is_allocation})
    classes = slab_classes(trace)
    reach = classes[-1].block_bytes
    sizes = {e.number: e.size_bytes for e in trace.events if e.is_allocation}
    kept = Trace(tuple(e for e in trace.events if sizes[e.number] <= reach))
    inner = [size for size in requested if size < reach]
    least = min(
        cost(peak_counts(kept, [s for i, s in enumerate(inner) if chosen >> i & 1] + [reach]))
        for chosen in range(1 << len(inner))
    )
    assert cost({each.block_bytes: each.peak_count for each in classes}) == least


@settings(max_examples=10, deadline=None)
@given(small_traces())
def test_a_class_knows_its_requests_and_its_peak(trace):
    classes = slab_classes(trace)
    cuts = [each.block_bytes for each in classes]
    assert all(one < other for one, other in pairwise(cuts))
    sizes = {e.number: e.size_bytes for e in trace.events if e.is_allocation}
    kept = Trace(tuple(e for e in trace.events if sizes[e.number] <= cuts[-1]))
    assert {e.block_bytes: e.peak_count for e in classes} == peak_counts(kept, cuts)
    served = sum(each.request_count for each in classes)
    assert served == sum(event.is_allocation for event in kept.events)
    assert served >= 0.99 * len(sizes)


@settings(max_examples=20, deadline=None)
@given(traces())
def test_a_recommended_composite_serves_its_own_trace(trace):
    assert replay(trace, recommend(trace).make).refused_count == 0


def test_blocks_that_no_default_slab_fits_take_less():
    trace = live_at_once([48] * 20_000)
    division = recommend(trace)
    assert [each.block_bytes for each in division.classes] == [48]
    assert division.classes[0].peak_count == division.classes[0].request_count == 20_000
    outcomes = compare(trace, division)
    assert outcomes["recommended"].peak_held_bytes < 0.8 * outcomes["default"].peak_held_bytes


def test_sizes_that_are_never_live_together_share_a_slab():
    events = []
    for size in (160, 192):
        events += [Event(number, size, True) for number in range(1, 1001)]
        events += [Event(number, 0, False) for number in range(1, 1001)]
    assert [each.block_bytes for each in slab_classes(Trace(tuple(events)))] == [192]


def test_a_size_that_is_hardly_asked_for_has_no_slab():
    division = recommend(live_at_once([16] * 999 + [1000]))
    assert [each.block_bytes for each in division.classes] == [16]


def test_what_slabs_do_not_serve_has_no_slab():
    assert recommend(live_at_once([5000, 1 << 20])).slabs == ()
    assert recommend(Trace(())).slabs == ()


def test_the_environment_says_the_same_as_the_division():
    division = recommend(live_at_once([48] * 700 + [300] * 900 + [1 << 20]))
    said = settings_from(division.environment)
    assert said.main_bytes == division.region_bytes
    assert said.slabs == division.slabs
    assert division.rest_share == pytest.approx(1 - sum(share for _, share in said.slabs))


def test_every_slab_has_room_for_the_peak_in_a_region_that_is_given():
    trace = live_at_once([48] * 700 + [300] * 900 + [1 << 20])
    division = recommend(trace, 1 << 30)
    assert division.region_bytes == 1 << 30
    slabs = division.make().slabs
    assert [slab.block_bytes for slab in slabs] == [e.block_bytes for e in division.classes]
    assert all(s.block_count >= e.peak_count for s, e in zip(slabs, division.classes, strict=True))


def test_the_rest_is_measured():
    division = recommend(live_at_once([1 << 20, 1 << 20]))
    assert 2 << 20 <= division.rest_touched_bytes < 3 << 20
    assert division.region_bytes >= 1.25 * division.rest_touched_bytes


def test_an_alignment_finer_than_the_default_is_no_candidate():
    assert all(size % 16 == 0 for size in CANDIDATES)
    assert (CANDIDATES[0], CANDIDATES[-1]) == (16, 2048)
    assert all(b <= 1.25 * a for a, b in pairwise(CANDIDATES) if a >= 64)


def test_a_region_of_no_bytes_is_refused():
    with pytest.raises(InputError, match="less than a byte"):
        recommend(Trace(()), 0)


def test_a_division_is_made_as_it_says():
    made = Division(1 << 20, ((64, 0.25),), (), 0).make()
    assert isinstance(made, CompositeResource)
    assert made.statistics().reserved_bytes == 1 << 20
    assert [slab.block_bytes for slab in made.slabs] == [64]
    assert CompositeResource(HostResource(), 1 << 20, slabs=()).slabs == []
