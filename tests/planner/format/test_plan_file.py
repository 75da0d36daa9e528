import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problem, problems
from tightship.errors import FormatError, InvalidPlanError
from tightship.planner.format import read_plan, write_plan
from tightship.planner.plan import Plan
from tightship.planner.portfolio import place


def document():
    """A valid plan file, as the object that it holds."""
    return {
        "format": "tightship-plan",
        "version": 1,
        "strategy": "by hand",
        "status": "optimal",
        "peak_bytes": 96,
        "lower_bound_bytes": 96,
        "capacity_bytes": None,
        "buffers": [
            {
                "name": "a",
                "size_bytes": 64,
                "alignment": 64,
                "start_step": 0,
                "stop_step": 2,
                "offset_bytes": 0,
            },
            {
                "name": "b",
                "size_bytes": 32,
                "alignment": 64,
                "start_step": 1,
                "stop_step": 3,
                "offset_bytes": 64,
            },
        ],
    }


def read(tmp_path, content):
    path = tmp_path / "plan.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_a_plan_written_by_hand_is_read(tmp_path):
    plan = read(tmp_path, document())
    assert plan.offset_bytes.tolist() == [0, 64]
    assert list(plan.problem.names) == ["a", "b"]
    assert (plan.peak_bytes, plan.status, plan.strategy) == (96, "optimal", "by hand")


def test_the_file_is_the_document(tmp_path):
    path = tmp_path / "plan.json"
    write_plan(path, read(tmp_path, document()))
    assert json.loads(path.read_text(encoding="utf-8")) == document()


@given(drawn=problems(), named=st.booleans(), capacity=st.none() | st.integers(0, 200))
def test_what_is_written_is_read_again(tmp_path_factory, drawn, named, capacity):
    names = tuple(f'"é\n{index}' for index in range(drawn.count)) if named and drawn.count else None
    made = problem(*drawn.columns().T, names=names, capacity_bytes=capacity)
    plan = place(made, effort=0)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    write_plan(path, plan)
    again = read_plan(path)
    assert again.offset_bytes.tolist() == plan.offset_bytes.tolist()
    assert again.problem.columns().tolist() == made.columns().tolist()
    for name in ("strategy", "status", "peak_bytes", "lower_bound_bytes"):
        assert getattr(again, name) == getattr(plan, name)
    assert (again.problem.names and tuple(again.problem.names)) == names
    assert again.problem.capacity_bytes == capacity


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a plan file in JSON"),
        ("{", "is not a plan file in JSON"),
        ("[" * 100_000, "is not a plan file in JSON"),
        ("9" * 5000, "is not a plan file in JSON"),
        ("[]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ("{}", "is not a plan file: `format` must be `tightship-plan`"),
        ('{"format": NaN}', "`NaN` is not JSON"),
        ('{"a": 1, "format": "x", "a": 2}', "field `a` occurs twice"),
        ('{"format": "tightship-plan"}', "`version` is null; it must be an integer"),
        ('{"format": "tightship-plan", "version": 2}', "has version 2; this reader knows"),
        ('{"format": "tightship-plan", "version": 1}', "has no `strategy`"),
    ],
)
def test_what_is_no_plan_file_is_refused(tmp_path, text, words):
    with pytest.raises(FormatError, match=words):
        read(tmp_path, text)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(FormatError, match="is not a plan file in JSON"):
        read_plan(path)


@pytest.mark.parametrize("bad", [None, True, 1.0, "1", -1, 2**63, [1], {}])
@pytest.mark.parametrize("key", ["size_bytes", "alignment", "start_step", "offset_bytes"])
def test_a_buffer_field_of_another_type_is_refused_by_name(tmp_path, key, bad):
    content = document()
    content["buffers"][1][key] = bad
    with pytest.raises(FormatError, match=rf"`buffers\[1\]`: `{key}` is "):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("version", "1"),
        ("version", True),
        ("strategy", 1),
        ("strategy", None),
        ("status", "best"),
        ("status", None),
        ("peak_bytes", 96.0),
        ("lower_bound_bytes", -1),
        ("capacity_bytes", "96"),
        ("buffers", {}),
        ("buffers", None),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(tmp_path, key, bad):
    with pytest.raises(FormatError, match=f"`{key}` is "):
        read(tmp_path, document() | {key: bad})


@pytest.mark.parametrize("key", sorted(set(document()) - {"format", "version"}))
def test_a_missing_field_is_named(tmp_path, key):
    content = document()
    del content[key]
    with pytest.raises(FormatError, match=f"has no `{key}`"):
        read(tmp_path, content)


@pytest.mark.parametrize("key", sorted(document()["buffers"][0]))
def test_a_missing_field_of_a_buffer_is_named(tmp_path, key):
    content = document()
    del content["buffers"][0][key]
    with pytest.raises(FormatError, match=rf"`buffers\[0\]` has no `{key}`"):
        read(tmp_path, content)


def test_an_unknown_field_is_named(tmp_path):
    with pytest.raises(FormatError, match="has an unknown field `comment`"):
        read(tmp_path, document() | {"comment": "mine"})
    content = document()
    content["buffers"][1]["colour"] = 1
    with pytest.raises(FormatError, match=r"`buffers\[1\]` has an unknown field `colour`"):
        read(tmp_path, content)


def test_names_are_given_to_all_buffers_or_none(tmp_path):
    content = document()
    content["buffers"][1]["name"] = None
    with pytest.raises(FormatError, match="names 1 of 2 buffers"):
        read(tmp_path, content)
    content["buffers"][0]["name"] = None
    assert read(tmp_path, content).problem.names is None


@pytest.mark.parametrize(
    ("key", "bad", "words"),
    [
        ("stop_step", 1, "Buffer 1 `b` lives in steps"),
        ("alignment", 48, "Buffer 1 `b` has alignment=48"),
        ("size_bytes", 2**62, "add up to"),
        ("size_bytes", 33, "states peak_bytes=96; its offsets end at 97"),
    ],
)
def test_a_buffer_that_cannot_be_is_refused(tmp_path, key, bad, words):
    content = document()
    content["buffers"][1][key] = bad
    with pytest.raises(FormatError, match=words):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lower_bound_bytes": 95}, "optimal with peak_bytes=96 and lower_bound_bytes=95"),
        ({"capacity_bytes": 95}, "the capacity is 95 bytes"),
        ({"status": "budget"}, "called budget"),
    ],
)
def test_a_plan_that_claims_too_much_is_refused(tmp_path, change, words):
    with pytest.raises(InvalidPlanError, match=words):
        read(tmp_path, document() | change)


def test_a_plan_that_would_corrupt_memory_is_refused(tmp_path):
    content = document()
    content["buffers"][0]["size_bytes"] = 65
    with pytest.raises(InvalidPlanError, match="Buffers 0 `a` and 1 `b` overlap"):
        read(tmp_path, content)


def test_an_offset_that_leaves_int64_with_its_size_is_refused(tmp_path):
    content = document() | {"peak_bytes": 64, "lower_bound_bytes": 64}
    content["buffers"][1] |= {"size_bytes": 64, "offset_bytes": 2**63 - 64}
    with pytest.raises(InvalidPlanError, match="Buffer 1 `b` has offset_bytes=9223"):
        read(tmp_path, content)


def test_an_empty_plan_is_a_plan(tmp_path):
    path = tmp_path / "plan.json"
    write_plan(path, Plan(problem(), np.zeros(0, np.int64), "none", 0, "optimal"))
    assert read_plan(path).problem.count == 0
