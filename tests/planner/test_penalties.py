import numpy as np
import pytest

from tightship.errors import PlanError
from tightship.planner.penalties import ReusePenalties


@pytest.mark.parametrize(
    ("pair", "words"),
    [((0, 0, 1), "0 and 0 costs 1; the buffers must differ"), ((0, 1, -1), "costs -1"),
     ((0, 1, 2**41), "the cost lie in \\[0, ")],
)  # fmt: skip
def test_a_penalty_that_means_nothing_is_refused(pair, words):
    with pytest.raises(PlanError, match=words):
        ReusePenalties(np.array([pair], np.int64))


def test_rows_are_int64_of_three_columns():
    with pytest.raises(PlanError, match=r"int32 of shape \(1, 3\)"):
        ReusePenalties(np.zeros((1, 3), np.int32))
    with pytest.raises(PlanError, match=r"int64 of shape \(1, 2\)"):
        ReusePenalties(np.zeros((1, 2), np.int64))


def test_rows_are_kept_from_change():
    rows = np.array([[0, 1, 2]], np.int64)
    made = ReusePenalties(rows)
    rows[0, 2] = 3
    assert made.rows.tolist() == [[0, 1, 2]]
    with pytest.raises(ValueError, match="read-only"):
        made.rows[0, 2] = 3
