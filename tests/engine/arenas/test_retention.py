from hypothesis import given
from hypothesis import strategies as st

from tightship.engine.arenas.retention import BYTES_PER_NS, SHARE, Demand, SlidingMaximum

notes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30)


@given(notes, st.integers(0, 40))
def test_the_largest_lately_is_that_of_a_search_through_all(steps, back):
    lately, all_notes, when = SlidingMaximum(), [], 0
    for passed, amount in steps:
        when += passed
        lately.note(when, amount)
        all_notes.append((when, amount))
        since = when - back
        assert lately.largest(since) == max(a for w, a in all_notes if w >= since)
    assert lately.largest(when + 1) == 0


def demand(*runs, busy_ns=0):
    """Record runs, each a time and the bytes it needed, numbered from 1."""
    noted = Demand()
    for number, (now_ns, needed) in enumerate(runs, start=1):
        noted.note(number, now_ns, 0, needed)
    noted.busy_ns = busy_ns
    return noted


def test_what_a_run_needed_since_a_time_stays():
    noted = demand((10, 1000), (20, 50), (30, 70))
    assert noted.wanted_bytes(1000, since_ns=10, since_number=0) == 1000
    assert noted.wanted_bytes(1000, since_ns=11, since_number=0) == 70
    assert noted.wanted_bytes(1000, since_ns=31, since_number=0) == 0


def test_what_later_runs_did_not_need_goes_once_runs_took_twenty_times_as_long_as_having_it_again():
    enough_ns = SHARE * (1000 - 70) // BYTES_PER_NS
    runs = (10, 1000), (20, 50), (30, 70)
    early = demand(*runs, busy_ns=enough_ns - 1)
    assert early.wanted_bytes(1000, since_ns=0, since_number=2) == 1000
    paid = demand(*runs, busy_ns=enough_ns)
    assert paid.wanted_bytes(1000, since_ns=0, since_number=1) == 1000
    assert paid.wanted_bytes(1000, since_ns=0, since_number=2) == 70


def test_the_time_of_runs_adds_up():
    noted = Demand()
    noted.note(1, 10, 4, 1)
    noted.note(2, 20, 5, 1)
    assert noted.busy_ns == 9
