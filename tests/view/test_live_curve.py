import re

from hypothesis import given
from hypothesis import strategies as st

from tightship.view.live_curve import live_curve


def heights(load, step_count, columns):
    """The height of each column, read back from the path."""
    curve = live_curve(load, step_count, columns, lambda size_bytes: size_bytes, 10)
    found = re.findall(r"([MHV])([0-9.]+)(?: ([0-9.]+))?", curve)
    at, height, row = 10, float(found[0][2]), []
    for letter, one, _ in found[1:]:
        if letter == "H":
            row += [height] * (int(one) - at)
            at = int(one)
        else:
            height = float(one)
    return row


def test_a_column_holds_the_largest_load_of_its_steps():
    load = [(0, 5), (1, 9), (2, 3), (4, 0)]
    assert heights(load, 6, 6) == [5, 9, 3, 3, 0, 0]
    assert heights(load, 6, 3) == [9, 3, 0]
    assert heights(load, 6, 12) == [5, 5, 9, 9, 3, 3, 3, 3, 0, 0, 0, 0]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=50), st.integers(1, 80))
def test_every_column_is_drawn_and_the_peak_is_kept(loads, columns):
    row = heights(list(enumerate(loads)), len(loads), columns)
    assert len(row) == columns
    assert max(row) == max(loads)
