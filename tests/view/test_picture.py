from hypothesis import given
from hypothesis import strategies as st

from tests.view import plans
from tightship.view.picture import Picture, picture_of_buffers

ROWS = st.lists(
    st.tuples(
        st.text(max_size=3),
        st.integers(0, 20),
        st.integers(1, 8),
        st.integers(0, 1000),
        st.integers(0, 1000),
    ).map(lambda row: (row[0], row[1], row[1] + row[2], row[3], row[4])),
    max_size=12,
)


@given(ROWS)
def test_load_is_the_sum_of_the_live_buffers_at_every_step(rows):
    picture = picture_of_buffers("plan.csv", rows, 0)
    changes = dict(picture.load())
    live_bytes = 0
    for step in range(picture.step_count + 1):
        live_bytes = changes.get(step, live_bytes)
        assert live_bytes == sum(r.size_bytes for r in picture.live_at(step))


@given(ROWS)
def test_the_peak_step_is_the_first_with_the_largest_load(rows):
    picture = picture_of_buffers("plan.csv", rows, 0)
    loads = [sum(r.size_bytes for r in picture.live_at(s)) for s in range(picture.step_count)]
    expected = next((s for s, load in enumerate(loads) if load and load == max(loads)), None)
    if expected is not None:
        assert picture.peak_step() == expected


def test_the_peak_of_a_model_is_where_its_steps_say():
    picture = plans.cnn()
    loads = [step.live_bytes for step in picture.steps]
    assert picture.peak_step() == loads.index(max(loads))


def test_live_buffers_come_largest_first():
    live = plans.cnn().live_at(6)
    assert [r.size_bytes for r in live] == sorted((r.size_bytes for r in live), reverse=True)
    assert all(r.start_step <= 6 < r.stop_step for r in live)


def test_the_total_is_the_arena_and_its_parts():
    picture = plans.cnn()
    assert picture.peak_bytes == picture.arena_bytes + sum(picture.parts.values())


def test_a_plan_is_exact_until_a_step_allocates_outside_it():
    assert plans.cnn().is_exact
    assert [index for index, _ in plans.bounded().dynamic_steps] == [9]
    assert not plans.bounded().is_exact


def test_an_empty_plan_has_no_load_and_no_gap():
    empty = Picture("empty", 0, 0, ())
    assert (empty.load(), empty.peak_step(), empty.gap, empty.step_count) == ([], 0, 0.0, 0)
