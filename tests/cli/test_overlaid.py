"""A plan laid over an older one: buffers and steps in pairs, and what moved the peak."""

from tests.small_models import dense
from tests.view import plans
from tightship import plan
from tightship.cli.overlaid import overlay_of


def test_a_plan_over_itself_pairs_everything_and_moves_nothing():
    picture = plans.cnn()
    found = overlay_of(picture, picture, "a name")
    assert found.pairs == tuple(range(len(picture.rectangles)))
    assert found.places == tuple(map(float, range(61)))
    assert (found.rows, found.cause, found.name) == ((), "", "a name")


def test_rows_sum_to_the_difference_of_the_peaks():
    old, new = (plan(dense(batch=4, hidden=hidden)[0]).picture() for hidden in (64, 65536))
    found = overlay_of(old, new, "")
    moved = sum(after - before for _, _, before, after in found.rows)
    assert moved == new.peak_bytes - old.peak_bytes
    assert "65536" in found.cause
