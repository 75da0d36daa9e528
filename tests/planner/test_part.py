import numpy as np

from tests.planner.constrained.problems import column
from tests.planner.problems import problem
from tightship.planner.constraints import FREE, Bank, Constraints
from tightship.planner.part import part_of


def test_a_part_has_its_buffers_and_what_holds_for_them():
    made = problem((8, 0, 6, 1), (4, 1, 7, 2), (6, 2, 9, 1), constraints=Constraints(
        column(FREE, FREE, 3),
        np.array([[0, 1, 2], [2, 3, 4], [2, 5, 7]]),
        banks=(Bank("a"), Bank("b")),
        allowed_banks=np.array([[True, True], [True, False], [False, True]]),
        group=column(5, 5, FREE), group_offset_bytes=column(0, 8, 0),
        gap_window_bytes=np.array([[0, 1], [2, 3], [0, 0]]),
    ))  # fmt: skip
    part = part_of(made, np.array([1, 2]))
    assert np.array_equal(part.columns(), made.columns()[:, 1:])
    assert part.constraints.pinned_offset_bytes.tolist() == [FREE, 3]
    assert part.constraints.gaps.tolist() == [[1, 3, 4], [1, 5, 7]]
    assert part.constraints.gap_window_bytes.tolist() == [[2, 3], [0, 0]]
    assert part.constraints.allowed_banks.tolist() == [[True, False], [False, True]]
    assert part.constraints.group.tolist() == [5, FREE]
    assert part.constraints.group_offset_bytes.tolist() == [8, 0]
    assert part.constraints.banks == made.constraints.banks


def test_a_part_of_a_problem_without_constraints_has_none():
    part = part_of(problem((8, 0, 6, 1), (4, 1, 7, 2), names=("a", "b")), np.array([1]))
    assert (part.size_bytes.tolist(), part.constraints, part.names) == ([4], None, None)
