from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.types.timers import Timers

actions = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 9), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("take"), st.integers(0, 60)),
    ),
    max_size=200,
)


@given(actions)
def test_timers_are_a_table_of_times(rows):
    timers, table = Timers(), {}
    for action, *numbers in rows:
        if action == "set":
            timers.set(*numbers)
            table[numbers[0]] = numbers[1]
        elif action == "cancel":
            timers.cancel(*numbers)
            table.pop(numbers[0], None)
        else:
            taken = timers.take_due(*numbers)
            due = {number: time for number, time in table.items() if time <= numbers[0]}
            assert (taken is None) == (not due)
            assert taken is None or table.pop(taken) == min(due.values())
        assert timers.next_ns() == min(table.values(), default=None)
        assert len(timers) == len(table)


def test_times_that_are_set_again_and_again_take_no_room():
    timers = Timers()
    for time_ns in range(10_000):
        timers.set(time_ns % 3, time_ns)
    assert len(timers._heap) < 100
