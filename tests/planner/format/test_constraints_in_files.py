"""Constraints written and read again, and refused where they cannot be read."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given

from tests.planner.constrained.problems import ALL, column, constrained_problems
from tests.planner.problems import problem
from tightship.errors import FormatError, InvalidPlanError, PlanError
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.format import read_csv, read_plan, write_csv, write_plan
from tightship.planner.portfolio import place
from tightship.planner.verify import verify_offsets


def assert_same(one: Constraints | None, other: Constraints | None) -> None:
    """The two mean the same: a column in which nothing stands is as good as none."""
    one, other = one or Constraints(), other or Constraints()
    for field in fields(Constraints):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, tuple):
            assert first == second
            continue
        rows = [[] if values is None else meant(field.name, values, made)
                for values, made in ((first, one), (second, other))]  # fmt: skip
        assert rows[0] == rows[1], field.name


def meant(name: str, values, constraints: Constraints):
    """The rows of a column that say something."""
    if name == "group_offset_bytes":
        values = np.where(constraints.group == FREE, FREE, values)
    if name == "allowed_banks":
        return [] if values.all() else values.tolist()
    if name == "gap_window_bytes":
        values = np.where(values[:, :1] < values[:, 1:], values, 0)
        return values.tolist() if values.any() else []
    return [] if name != "gaps" and (values == FREE).all() else values.tolist()


@given(drawn=constrained_problems(parts=ALL))
def test_a_plan_file_keeps_constraints_and_banks(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan = place(drawn, effort=0)
    write_plan(path, plan)
    again = read_plan(path)
    assert_same(again.problem.constraints, drawn.constraints)
    assert again.offset_bytes.tolist() == plan.offset_bytes.tolist()
    assert (again.bank is None) == (plan.bank is None)
    assert plan.bank is None or again.bank.tolist() == plan.bank.tolist()


@given(drawn=constrained_problems(parts="gaps windows groups"))
def test_a_csv_keeps_gaps_and_groups(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    write_csv(path, drawn)
    again = read_csv(path)[0]
    assert_same(again.constraints, drawn.constraints)
    text = path.read_text()
    write_csv(path, again)
    assert path.read_text() == text


def test_a_csv_keeps_pins(tmp_path):
    path = tmp_path / "buffers.csv"
    pinned = Constraints(column(FREE, 0, 2**40))
    write_csv(path, problem((1, 0, 1, 1), (1, 0, 1, 1), (1, 0, 1, 1), constraints=pinned))
    assert path.read_text().splitlines()[0] == "id,lower,upper,size,pinned"
    assert_same(read_csv(path)[0].constraints, pinned)


def test_gaps_of_a_file_with_last_steps_hold_theirs(tmp_path):
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,end,size,hint,gaps\na,0,9,4,x,1-2 5-5\nb,0,9,4,,\n")
    made = read_csv(path)[0]
    assert made.constraints.gaps.tolist() == [[0, 1, 3], [0, 5, 6]]
    path.write_text("id,lower,upper,size,gaps\na,0,9,4,1-2 5-6\n")
    assert read_csv(path)[0].constraints.gaps.tolist() == [[0, 1, 2], [0, 5, 6]]


def test_a_gap_keeps_the_bytes_that_a_file_names(tmp_path):
    # As minimalloc writes them: in steps 2 to 4, only bytes 4 to 7 of `a` are taken.
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,upper,size,gaps\na,0,9,8,2-5@4:8 5-6\nb,2,5,4,\n")
    made = read_csv(path)[0]
    assert made.constraints.gaps.tolist() == [[0, 2, 5], [0, 5, 6]]
    assert made.constraints.gap_window_bytes.tolist() == [[4, 8], [0, 0]]
    plan = place(made)
    assert (plan.offset_bytes.tolist(), plan.peak_bytes, plan.status) == ([0, 0], 8, "optimal")
    with pytest.raises(InvalidPlanError, match=r"overlap: bytes \[4, 6\) in steps \[2, 5\)"):
        verify_offsets(made, column(0, 2))


@pytest.mark.parametrize("constraints", [{"banks": (Bank("a"),)},
                                         {"forbidden": (ForbiddenRange(0, 1),)}])  # fmt: skip
def test_a_csv_has_no_place_for_banks_and_forbidden_bytes(tmp_path, constraints):
    made = problem((1, 0, 1, 1), constraints=Constraints(**constraints))
    with pytest.raises(PlanError, match="holds no banks and no forbidden bytes"):
        write_csv(tmp_path / "buffers.csv", made)


HEADER = "id,lower,upper,size"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{HEADER},gaps\na,0,9,4,\nb,0,9,4,3\n", "line 3, column `gaps`: '3' is not a gap"),
        (f"{HEADER},gaps\na,0,9,4,3-4@1\n", "line 2, column `gaps`: '3-4@1' is not a gap"),
        (f"{HEADER},gaps\na,0,9,4,3-4@1-2\n", "line 2, column `gaps`: '3-4@1-2' is not a gap"),
        (f"{HEADER},gaps\na,0,9,4,3-4@2:1\n", r"line 2, column `gaps`: .* keeps bytes \[2, 1\)"),
        (f"{HEADER},gaps\na,0,9,4,3-4@2:5\n", r"Buffer 0 keeps bytes \[2, 5\) in a gap"),
        (f"{HEADER},gaps\na,0,9,4,4-4\n", r"line 2, column `gaps`: a gap of \[4, 4\)"),
        (f"{HEADER},gaps\na,1,9,4,0-4\n", r"Buffer 0 has a gap in steps \[0, 4\)"),
        (f"{HEADER},pinned\na,0,9,4,x\n", "line 2, column `pinned`: 'x' is not an integer"),
        (f"{HEADER},pinned\na,0,9,4,-1\n", "line 2, column `pinned`: -1 is outside"),
        (f"{HEADER},alignment,pinned\na,0,9,4,8,4\n", "Buffer 0 is pinned to byte 4"),
        (f"{HEADER},group\n", "line 1: `group` and `group_offset` must come together"),
        (f"{HEADER},group,group_offset\na,0,9,4,1,0\nb,0,9,4,1,\n",
         "line 3, column `group_offset`: a buffer in a group needs an offset"),
    ],
)  # fmt: skip
def test_bad_columns_are_refused_by_line(tmp_path, text, words):
    path = tmp_path / "buffers.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=words):
        read_csv(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"gaps": [[2, 3]]', '"gaps": [[2]]', "`buffers.0.`: `gaps` is .* an array of pairs"),
        ('"gaps": [[2, 3]]', '"gaps": [[2, 3.5]]', "an array of pairs of integers"),
        ('"gap_windows": [[1, 2]]', '"gap_windows": [[1, 2], [3, 4]]', "a pair for each of 1 gaps"),
        (
            '"gap_windows": [[1, 2]]',
            '"gap_windows": [[1]]',
            "`gap_windows` is .* an array of pairs",
        ),
        ('"gaps": [[2, 3]]', '"gaps": 7', "`gaps` is 7; it must be an array"),
        ('"allowed_banks": [1]', '"allowed_banks": [2]', "it must be indices below 2"),
        ('"allowed_banks": [1]', '"allowed_banks": ["1"]', "an array of integers"),
        (', "bank": 1', "", "`buffers.0.`: `bank` is null; it must be an integer"),
        ('"cost_per_byte": 3', '"cost": 3', "`banks.1.` has no `cost_per_byte`"),
        ('"start_byte": 64', '"start_byte": -1', "`forbidden.0.`: `start_byte` is -1"),
        ('"pinned_offset_bytes": 8', '"pinned_offset_bytes": null', "is null; it must be an int"),
        ('"pinned_offset_bytes": 8', '"pinned": 8', "has an unknown field `pinned`"),
    ],
)
def test_a_bad_plan_file_is_refused_by_field(tmp_path, old, new, words):
    made = problem((4, 0, 9, 1), (4, 0, 9, 1), constraints=Constraints(
        column(FREE, 8), np.array([[0, 2, 3]]), (ForbiddenRange(64, 65),),
        (Bank("sram", 16), Bank("dram", None, 3)), np.array([[False, True], [True, True]]),
        gap_window_bytes=np.array([[1, 2]]),
    ))  # fmt: skip
    path = tmp_path / "plan.json"
    write_plan(path, place(made, effort=0))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FormatError, match=words):
        read_plan(path)
