import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problems
from tightship._core import read_plan_rows, write_plan_rows
from tightship.planner.format.json_fields import Fields, load_json
from tightship.planner.format.plan_file import write_plan
from tightship.planner.format.plan_rows import COLUMN_KEYS, load_plan, read_rows
from tightship.planner.portfolio import place

ROW = {"name": None} | dict.fromkeys(COLUMN_KEYS, 7)


def content(rows, **head):
    return json.dumps({"strategy": "]}", "x": [{"y": [1, -2.5e3, True]}], **head, "buffers": rows})


def one_by_one(path):
    return read_rows(Fields("plan", load_json(path, path.read_bytes())))


@given(problems(), st.booleans())
def test_the_core_reads_what_is_written_as_the_slow_reader_does(tmp_path_factory, drawn, named):
    if named:
        drawn = type(drawn)(*drawn.columns()[[0, 1, 2, 3]], tuple(map(str, range(drawn.count))))
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    write_plan(path, place(drawn, effort=0))
    fast, slow = load_plan(path)[1], one_by_one(path)
    assert fast is not None
    assert [column.tolist() for column in fast.columns] == [
        column.tolist() for column in slow.columns
    ]
    assert (fast.names and list(fast.names)) == (slow.names and list(slow.names))


@pytest.mark.parametrize("indent", [None, 0, 3])
@pytest.mark.parametrize("rows", [[], [ROW], [ROW, dict(reversed(ROW.items()))]])
def test_fields_may_come_in_any_order_and_with_any_space(rows, indent):
    text = json.dumps(json.loads(content(rows)), indent=indent)
    columns, names, begin, end = read_plan_rows(text.encode())
    assert [column.tolist() for column in columns] == [[7] * len(rows)] * 5
    assert names is None
    assert json.loads(text[begin:end]) == rows
    assert json.loads(text[:begin] + "[]" + text[end:])["buffers"] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"alignment": 7', '"alignment": 07'),
        ('"alignment": 7', '"alignment": 7.0'),
        ('"alignment": 7', '"alignment": 7e0'),
        ('"alignment": 7', '"alignment": -7'),
        ('"alignment": 7', '"alignment": 9223372036854775808'),
        ('"alignment": 7', '"alignment": "7"'),
        ('"alignment": 7', '"alignment": 7, "alignment": 7'),
        ('"alignment": 7, ', ""),
        ('"alignment": 7', '"alignment": 7, "gaps": []'),
        ('"name": null', '"name": 1'),
        ('"name": null', r'"name": "a\\b"'),
        ('"name": null', '"name": "a\nb"'),
        ("}]}", "}]"),
        ("}]}", "},]}"),
        ("}]}", "]}"),
        ('"buffers"', r'"buff\u0065rs"'),
        ('"buffers"', '"buffer"'),
        ("{", "[", ),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_slow_reader(old, new):
    text = content([ROW])
    assert old in text
    changed = text.replace(old, new, 1) if old != "}]}" else text.removesuffix(old) + new
    found = read_plan_rows(changed.encode())
    assert found is None or json_fails(changed)


def json_fails(text):
    """Return whether the rest of the file is invalid JSON; `load_plan` reads it after the rows."""
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def test_names_are_all_there_or_none():
    named = ROW | {"name": "é"}
    plain = content([named, named]).replace(json.dumps("é"), '"é"')
    text, stops = read_plan_rows(plain.encode())[1]
    assert (text.decode(), stops.tolist()) == ("éé", [2, 4])
    assert read_plan_rows(content([named, ROW]).encode()) is None


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_any_name_is_written_as_json(names):
    encoded = [name.encode(errors="replace") for name in names]
    column = np.arange(len(names))
    stops = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    rows = json.loads(b"[" + write_plan_rows([column] * 5, b"".join(encoded), stops) + b"]")
    assert [row["name"].encode() for row in rows] == encoded
    assert [row["offset_bytes"] for row in rows] == column.tolist()


def test_columns_and_names_that_do_not_go_together_are_refused():
    column = np.arange(2)
    with pytest.raises(ValueError, match="do not go together"):
        write_plan_rows([column] * 4 + [column[:1]], None, column[:0])
    with pytest.raises(ValueError, match="do not go together"):
        write_plan_rows([column] * 5, b"ab", np.array([1, 3]))
