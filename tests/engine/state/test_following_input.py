"""Inputs that follow from the lengths of a step."""

import numpy as np
import pytest

from tightship.engine.state import following_input
from tightship.engine.state.following_input import FollowingInput


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (following_input.ROWS_IN_USE, 1),
        (following_input.NEW_POSITIONS, [7, 8]),
        (following_input.PAST, 7),
        (following_input.TOTAL, 9),
        (following_input.LAST, 8),
    ],
)
def test_elements_follow_from_the_past_and_the_new_tokens(
    given: FollowingInput, wanted: object
) -> None:
    found = given.value(7, 2)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, wanted)
