from hypothesis import given

from tests.trace.test_events import traces
from tightship.planner.format.allocation_trace import problem_of_trace
from tightship.trace.events import Event, Trace


def test_blocks_live_from_their_event_to_the_one_that_gives_them_back():
    trace = Trace((Event(7, 64, True), Event(8, 32, True), Event(7, 0, False), Event(7, 16, True)))
    problem = problem_of_trace(trace, capacity_bytes=100)
    assert list(problem.names) == ["7", "8", "7#2"]
    assert problem.columns().T.tolist() == [[64, 0, 2, 1], [32, 1, 4, 1], [16, 3, 4, 1]]
    assert problem.capacity_bytes == 100


@given(traces())
def test_the_load_is_what_the_events_add_up_to(trace):
    trace = Trace(
        tuple(Event(e.number, e.size_bytes % 1000, e.is_allocation) for e in trace.events)
    )
    sizes, loads = {}, []
    for event in trace.events:
        if event.is_allocation:
            sizes[event.number] = event.size_bytes
        else:
            del sizes[event.number]
        loads.append(sum(sizes.values()))
    assert problem_of_trace(trace).live_bytes(len(loads)).tolist() == loads
