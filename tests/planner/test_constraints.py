import numpy as np
import pytest

from tests.planner.constrained.problems import column
from tests.planner.problems import problem
from tightship.errors import PlanError
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange

ROWS = ((8, 0, 6, 4), (8, 2, 6, 8))
WINDOW = {"gaps": np.array([[0, 1, 4]])}
WINDOW = {"gaps": np.array([[0, 1, 4]])}


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"pinned_offset_bytes": column(0)}, "has 1 entries; there are 2 buffers"),
        ({"pinned_offset_bytes": column(0, 12)}, "Buffer 1 is pinned to byte 12, .* alignment 8"),
        ({"pinned_offset_bytes": column(-2, 8)}, "Buffer 0 is pinned to byte -2"),
        ({"pinned_offset_bytes": np.zeros(2)}, "`pinned_offset_bytes` is float64"),
        ({"gaps": np.array([[0, 1]])}, r"it must be \(g, 3\)"),
        ({"gaps": np.array([[2, 1, 2]])}, "A gap names buffer 2; there are 2"),
        ({"gaps": np.array([[1, 1, 3]])}, r"Buffer 1 has a gap in steps \[1, 3\); .* \[2, 6\)"),
        ({"gaps": np.array([[0, 5, 7]])}, r"Buffer 0 has a gap in steps \[5, 7\)"),
        ({"gaps": np.array([[0, 3, 3]])}, r"Buffer 0 has a gap in steps \[3, 3\)"),
        (
            {"gaps": np.array([[0, 3, 5], [0, 1, 4]])},
            "overlap: one stops at step 4, and the next starts at step 3",
        ),
        ({"gap_window_bytes": np.array([[0, 1]])}, r"a row of two for each of 0 gaps"),
        (WINDOW | {"gap_window_bytes": np.array([[0, 1, 2]])}, r"shape \(1, 3\); it must have"),
        (
            WINDOW | {"gap_window_bytes": np.array([[2, 9]])},
            r"bytes \[2, 9\) in a gap; .* \[0, 8\)",
        ),
        (WINDOW | {"gap_window_bytes": np.array([[3, 2]])}, r"bytes \[3, 2\) in a gap"),
        (WINDOW | {"gap_window_bytes": np.array([[-1, 2]])}, r"bytes \[-1, 2\) in a gap"),
        ({"forbidden": (ForbiddenRange(3, 3),)}, r"forbidden bytes \[3, 3\)"),
        ({"forbidden": (ForbiddenRange(3, 4, 5, 5),)}, r"in steps \[5, 5\)"),
        ({"forbidden": (ForbiddenRange(3, 4, bank=1),)}, "in bank 1; there are 1 banks"),
        ({"banks": (Bank("a", -1),)}, "Bank `a` has capacity -1 and cost 0"),
        ({"banks": (Bank("a"),) * 63}, "63 banks; at most 62"),
        ({"allowed_banks": np.array([[True], [False]])}, "Buffer 1 is allowed in no bank"),
        ({"allowed_banks": np.array([[True, True]] * 2)}, r"it must be bool of shape \(2, 1\)"),
        ({"group": column(0, 0)}, "must be given together"),
        ({"group": column(0, -3), "group_offset_bytes": column(0, 0)}, "is in group -3"),
        ({"group": column(0, 0), "group_offset_bytes": column(0, -8)}, "lies -8 bytes above"),
        ({"group": column(0, 0), "group_offset_bytes": column(2, 0)}, "cannot both be aligned"),
    ],
)
def test_what_cannot_be_about_the_buffers_is_refused(constraints, words):
    with pytest.raises(PlanError, match=words):
        problem(*ROWS, constraints=Constraints(**constraints))


@pytest.mark.parametrize(
    ("pinned", "words"),
    [
        ((0, 16), "pinned to bytes 0 and 16; in the group they lie 8 bytes apart"),
        ((FREE, 0), "puts the base of its group at byte -8"),
        ((4, FREE), "where a member is misaligned or below byte 0"),
    ],
)
def test_pins_that_tear_a_group_are_refused(pinned, words):
    with pytest.raises(PlanError, match=words):
        problem(
            *ROWS,
            constraints=Constraints(
                column(*pinned), group=column(5, 5), group_offset_bytes=column(0, 8)
            ),
        )


def test_a_group_without_a_common_bank_is_refused():
    apart = Constraints(
        banks=(Bank("a"), Bank("b")),
        allowed_banks=np.array([[True, False], [False, True]]),
        group=column(0, 0),
        group_offset_bytes=column(0, 8),
    )
    with pytest.raises(
        PlanError, match="The group of buffer 0 has no bank that is allowed for all"
    ):
        problem(*ROWS, constraints=apart)


def test_banks_have_the_capacities_of_the_problem():
    with pytest.raises(PlanError, match="the problem has banks; give each bank its capacity"):
        problem(*ROWS, capacity_bytes=9, constraints=Constraints(banks=(Bank("a"),)))


def test_columns_are_frozen_copies_and_gaps_sorted():
    given = np.array([[1, 3, 4], [0, 1, 2]])
    made = Constraints(gaps=given)
    given[0] = 9
    assert made.gaps.tolist() == [[0, 1, 2], [1, 3, 4]]
    with pytest.raises(ValueError, match="read-only"):
        made.gaps[0, 0] = 1
