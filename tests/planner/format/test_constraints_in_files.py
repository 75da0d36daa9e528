"""Constraints written and read again, and refused where they cannot be read."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given

from tests.planner.constrained_problems import column, constrained_problems
from tests.planner.problems import problem
from tightship.errors import FormatError, PlanError
from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.format import read_csv, read_plan, write_csv, write_plan
from tightship.planner.portfolio import solve


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
    return [] if name != "gaps" and (values == FREE).all() else values.tolist()


@given(drawn=constrained_problems())
def test_a_plan_file_keeps_constraints_and_banks(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan = solve(drawn, effort=0)
    write_plan(path, plan)
    again = read_plan(path)
    assert_same(again.problem.constraints, drawn.constraints)
    assert again.offset_bytes.tolist() == plan.offset_bytes.tolist()
    assert (again.bank is None) == (plan.bank is None)
    assert plan.bank is None or again.bank.tolist() == plan.bank.tolist()


@given(drawn=constrained_problems(parts="gaps groups"))
def test_a_csv_keeps_gaps_and_groups(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    write_csv(path, drawn)
    assert_same(read_csv(path)[0].constraints, drawn.constraints)


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
        (f"{HEADER},gaps\na,0,9,4,3-4@1:2\n", "line 2, column `gaps`: '3-4@1:2' is not a gap"),
        (f"{HEADER},gaps\na,0,9,4,4-4\n", r"line 2, column `gaps`: a gap of \[4, 4\)"),
        (f"{HEADER},gaps\na,0,9,4,0-4\n", r"Buffer 0 has a gap in steps \[0, 4\)"),
        (f"{HEADER},pinned\na,0,9,4,x\n", "line 2, column `pinned`: 'x' is not an integer"),
        (f"{HEADER},pinned\na,0,9,4,-1\n", "line 2, column `pinned`: -1 is outside"),
        (f"{HEADER},alignment,pinned\na,0,9,4,8,4\n", "Buffer 0 is pinned to byte 4"),
        (f"{HEADER},group\n", "line 1: `group` and `group_offset` must come together"),
        (f"{HEADER},group,group_offset\na,0,9,4,1,0\nb,0,9,4,1,\n",
         "line 3, column `group_offset`: a member of a group has an offset"),
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
    ))  # fmt: skip
    path = tmp_path / "plan.json"
    write_plan(path, solve(made, effort=0))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FormatError, match=words):
        read_plan(path)
