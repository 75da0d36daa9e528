"""Equal runs within a sequence."""

import numpy as np
import pytest

from tightship.graph.equal_runs import longest_run


@pytest.mark.parametrize(
    ("kinds", "found"),
    [("xabababy", (1, 2, 3)), ("abcabcabcab", (0, 3, 3)), ("zaaaabcbcbcbcz", (5, 2, 4)),
     ("ababxcdcd", None), ("", None), ("aaa", (0, 1, 3))],
)  # fmt: skip
def test_the_runs_that_cover_most_are_found(kinds: str, found: tuple[int, int, int] | None) -> None:
    assert longest_run(np.array([ord(each) for each in kinds], np.int64)) == found
