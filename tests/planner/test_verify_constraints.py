import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.constrained.problems import ALL, column, constrained_problems, is_valid
from tests.planner.problems import problem
from tightship.errors import InvalidPlanError
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.plan import Plan
from tightship.planner.portfolio import place
from tightship.planner.verify import verify, verify_offsets

BANKS = (Bank("sram", 16), Bank("dram"))


@given(drawn=constrained_problems(parts=ALL), data=st.data())
def test_the_verdict_is_that_of_looking_at_every_cell(drawn, data):
    plan = place(drawn, effort=0)
    offsets, banks = plan.offset_bytes.copy(), None if plan.bank is None else plan.bank.copy()
    moved = data.draw(st.integers(0, drawn.count - 1))
    offsets[moved] += data.draw(st.integers(-4, 4))
    if banks is not None:
        banks[moved] = data.draw(st.integers(0, len(drawn.constraints.banks) - 1))
    if is_valid(drawn, offsets, banks):
        verify_offsets(drawn, offsets, banks)
    else:
        with pytest.raises(InvalidPlanError):
            verify_offsets(drawn, offsets, banks)


ROWS = ((8, 0, 4, 4), (8, 2, 6, 4))

FAULTS = {
    "pinned elsewhere": (
        {"pinned_offset_bytes": column(FREE, 8)},
        (16, 12),
        None,
        "Buffer 1 `b` is pinned to byte 8; the plan has it at 12",
    ),
    "forbidden": (
        {"forbidden": (ForbiddenRange(14, 32, 5, 9),)},
        (0, 8),
        None,
        r"Buffer 1 `b` uses forbidden bytes \[14, 16\) in steps \[5, 6\)",
    ),
    "forbidden by a byte": (
        {"forbidden": (ForbiddenRange(15, 32, 5, 9),)},
        (0, 8),
        None,
        r"Buffer 1 `b` uses forbidden bytes \[15, 16\) in steps \[5, 6\)",
    ),
    "torn": (
        {"group": column(3, 3), "group_offset_bytes": column(0, 4)},
        (8, 16),
        None,
        "Buffers 0 `a` and 1 `b` are of one group and must lie 4 bytes apart; .* them 8 apart",
    ),
    "torn between banks": (
        {"group": column(3, 3), "group_offset_bytes": column(0, 8), "banks": BANKS},
        (0, 8),
        (0, 1),
        "Buffers 0 `a` and 1 `b` are of one group; the plan has them in banks 0 and 1",
    ),
    "wrong bank": (
        {"banks": BANKS, "allowed_banks": np.array([[True, True], [True, False]])},
        (0, 0),
        (0, 1),
        "Buffer 1 `b` is in bank `dram`; it is allowed in `sram`",
    ),
    "no such bank": ({"banks": BANKS}, (0, 0), (0, 2), "Buffer 1 `b` is in bank 2; there are 2"),
    "no banks": ({"banks": BANKS}, (0, 0), None, "has 2 banks; the plan names no bank"),
    "banks of nothing": ({}, (0, 8), (0, 0), "has 0 banks; the plan names a bank"),
    "one bank too few": ({"banks": BANKS}, (0, 8), (0,), r"banks of shape \(1,\)"),
    "overlap in a bank": (
        {"banks": BANKS},
        (0, 4),
        (1, 1),
        r"Buffers 0 `a` and 1 `b` overlap: bytes \[4, 8\) in steps \[2, 4\)",
    ),
    "overlap after a gap": (
        {"gaps": np.array([[0, 1, 3]])},
        (0, 4),
        None,
        r"Buffers 0 `a` and 1 `b` overlap: bytes \[4, 8\) in steps \[3, 4\)",
    ),
    "misaligned": ({}, (0, 10), None, "offset_bytes=10; it must be a multiple of its alignment 4"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_named(fault):
    constraints, offsets, banks, message = FAULTS[fault]
    made = problem(*ROWS, names=("a", "b"), constraints=Constraints(**constraints))
    with pytest.raises(InvalidPlanError, match=message):
        verify_offsets(made, column(*offsets), None if banks is None else column(*banks))


@pytest.mark.parametrize(
    ("constraints", "offsets", "banks"),
    [
        ({"gaps": np.array([[0, 1, 3]])}, (0, 8), None),
        ({"group": column(3, 3), "group_offset_bytes": column(0, 4)}, (8, 12), None),
        ({"banks": BANKS}, (0, 0), (0, 1)),
        ({"forbidden": (ForbiddenRange(8, 12, 0, 2),)}, (0, 8), None),
    ],
)
def test_what_is_honoured_passes(constraints, offsets, banks):
    made = problem(*ROWS, constraints=Constraints(**constraints))
    verify_offsets(made, column(*offsets), None if banks is None else column(*banks))


def test_a_member_of_a_group_meets_a_buffer_that_is_in_none():
    group = Constraints(group=column(0, 0, FREE), group_offset_bytes=column(0, 8, 0))
    made = problem((8, 0, 2, 1), (8, 1, 4, 1), (8, 3, 5, 1), constraints=group)
    with pytest.raises(
        InvalidPlanError, match=r"1 and 2 overlap: bytes \[12, 16\) in steps \[3, 4"
    ):
        verify_offsets(made, column(0, 8, 12))


def test_a_bank_that_is_too_small_is_named():
    made = problem((8, 0, 2, 1), (9, 1, 4, 1), constraints=Constraints(banks=BANKS))
    plan = Plan(made, column(0, 8), "by hand", 0, "feasible", column(0, 0))
    with pytest.raises(InvalidPlanError, match="1 ends at byte 17; the capacity of bank `sram` is"):
        verify(plan)
    verify(Plan(made, column(0, 8), "by hand", 0, "feasible", column(1, 1)))
    with pytest.raises(InvalidPlanError, match="is called budget, but"):
        verify(Plan(made, column(0, 8), "by hand", 0, "budget", column(1, 1)))
