import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import problem, problems
from tightship.errors import FormatError
from tightship.planner.format import read_csv, write_csv


def read(tmp_path, text):
    path = tmp_path / "buffers.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(path)


def rows_of(made):
    return [tuple(row) for row in np.stack(made.columns(), axis=1).tolist()]


def test_half_open_rows_are_read_as_they_are(tmp_path):
    made, offsets = read(tmp_path, "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n")
    assert rows_of(made) == [(4, 0, 3, 1), (4, 3, 9, 1)]
    assert list(made.names) == ["b1", "b2"]
    assert offsets is None


def test_a_column_named_end_holds_the_last_step(tmp_path):
    made, _ = read(tmp_path, "id,lower,end,size\nb1,0,2,4\nb2,3,3,4\n")
    assert rows_of(made) == [(4, 0, 3, 1), (4, 3, 4, 1)]


@pytest.mark.parametrize("header", ["buffer,start,end", "buffer_id,begin,end", "id,start,end"])
def test_columns_have_the_other_names_that_minimalloc_knows(tmp_path, header):
    made, _ = read(tmp_path, f"{header},size,gaps\nb1,0,8,4,2-3@1:2\n")
    assert (rows_of(made), list(made.names)) == ([(4, 0, 9, 1)], ["b1"])
    assert made.constraints.gaps.tolist() == [[0, 2, 4]]
    with pytest.raises(FormatError, match=f"line 3, column `{header.split(',')[0]}`: `b1` occ"):
        read(tmp_path, f"{header},size\nb1,0,8,4\nb1,0,8,4\n")


@pytest.mark.parametrize(
    "text",
    [
        "id,lower,upper,size\r\nb1,0,3,4\r\n",
        "\ufeffid,lower,upper,size\nb1,0,3,4",
        "size, upper ,id,lower\n\n4, 3,b1,0 \n\n",
    ],
)
def test_line_ends_order_and_blanks_do_not_matter(tmp_path, text):
    made, _ = read(tmp_path, text)
    assert (rows_of(made), list(made.names)) == ([(4, 0, 3, 1)], ["b1"])


def test_alignment_and_offset_are_optional_columns(tmp_path):
    made, offsets = read(tmp_path, "id,lower,upper,size,alignment,offset\nb1,0,3,4,64,128\n")
    assert rows_of(made) == [(4, 0, 3, 64)]
    assert offsets.tolist() == [128]


def test_a_capacity_comes_from_the_caller(tmp_path):
    path = tmp_path / "buffers.csv"
    write_csv(path, problem((4, 0, 1, 1), capacity_bytes=9))
    assert read_csv(path)[0].capacity_bytes is None
    assert read_csv(path, capacity_bytes=9)[0].capacity_bytes == 9


@given(drawn=problems(), with_offsets=st.booleans(), factor=st.sampled_from([1, 2**40]))
def test_what_is_written_is_read_again(tmp_path_factory, drawn, with_offsets, factor):
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    names = tuple(f'b,"{index}" é' for index in range(drawn.count))
    size, start, stop, alignment = drawn.columns()
    named = problem(*zip(size * factor, start, stop, alignment, strict=True), names=names)
    offsets = np.arange(drawn.count, dtype=np.int64) if with_offsets else None
    write_csv(path, named, offsets)
    made, again = read_csv(path)
    assert rows_of(made) == rows_of(named)
    assert tuple(made.names) == names
    assert (again is None) == (offsets is None)
    assert again is None or again.tolist() == offsets.tolist()


HEADER = "id,lower,upper,size"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("id,lower,size\n", "one of the columns `upper` .* and `end`"),
        ("id,lower,upper,end,size\n", "one of the columns `upper` .* and `end`"),
        ("id,upper,size\n", "line 1: column `lower` is missing"),
        ("id,lower,upper,size,colour\n", "line 1: column `colour` is unknown"),
        ("id,lower,upper,size,size\n", "line 1: column `size` occurs twice"),
        ("id,start,lower,upper,size\n", "line 1: column `lower` occurs twice"),
        ("b1,0,3,4\n", "line 1: column `b1` is unknown"),
        (f"{HEADER}\nb1,0,3,4\nb2,0,3\n", "line 3 has 3 fields; the header names 4 columns"),
        (f"{HEADER}\nb1,0,3,4,5\n", "line 2 has 5 fields"),
        (f"{HEADER}\nb1,0,3,4.5\n", "line 2, column `size`: '4.5' is not an integer"),
        (f"{HEADER}\nb1,x,y,z\n", "line 2, column `lower`: 'x' is not an integer"),
        (f"{HEADER}\nb1,0,--3,4\n", "line 2, column `upper`: '--3' is not an integer"),
        (f"{HEADER}\nb1,0,+-3,4\n", r"line 2, column `upper`: '\+-3' is not an integer"),
        (f"{HEADER}\nb1,0,3,\n", "line 2, column `size`: '' is not an integer"),
        (f"{HEADER}\nb1,0,3,1_000\n", "line 2, column `size`: '1_000' is not an integer"),
        (f"{HEADER}\nb1,0,3,٤\n", "line 2, column `size`: '٤' is not an integer"),
        (f"{HEADER}\nb1,0,3,-4\n", r"line 2, column `size`: -4 is outside \[0, "),
        (f"{HEADER}\nb1,0,3,{2**63}\n", f"line 2, column `size`: {2**63} is outside"),
        (f"{HEADER}\nb1,0,3,{'9' * 5000}\n", "line 2, column `size`: 9{40} is outside"),
        (f"{HEADER}\nb1,0,3,{2**62}\n", "add up to .* at buffer 0 `b1`"),
        (f"{HEADER}\n\nb1,3,3,4\n", r"line 3, column `upper`: a lifetime of \[3, 3\)"),
        ("id,lower,end,size\nb1,3,2,4\n", r"line 2, column `end`: a lifetime of \[3, 3\)"),
        (f"id,lower,end,size\nb1,3,{2**63 - 1},4\n", "line 2, column `end`: a lifetime"),
        (f"{HEADER},alignment\nb1,0,3,4,12\n", "line 2, column `alignment`: 12 is not a power"),
        (f"{HEADER},alignment\nb1,0,3,4,0\n", "line 2, column `alignment`: 0 is not a power"),
        (f"{HEADER},offset\nb1,0,3,4,\n", "line 2, column `offset`: '' is not an integer"),
        (f"{HEADER}\nb1,0,3,4\nb1,4,5,4\n", "line 3, column `id`: `b1` occurs twice"),
        (f"{HEADER}\r\nb1,0,3,4\r\n\r\nb2,0,x,4\r\n", "line 4, column `upper`: 'x' is not"),
        (f"{HEADER}\rb1,0,3,4\rb2,0,x,4\r", "line 3, column `upper`: 'x' is not"),
        (f"{HEADER}\n2,0,3,4\n10,4,5,4\n2,5,6,4\n", "line 4, column `id`: `2` occurs twice"),
        (f'{HEADER}\n"b,0,3,4\n', "line 3, column `id`: a quoted field must end"),
        (f'{HEADER}\n"b"1,0,3,4\n', "line 2, column `id`: a quoted field must end"),
        (f'{HEADER}\nb,"0\n",x,4\n', "line 3, column `upper`: 'x' is not"),
        (f'"{HEADER}\n', "line 2, column .*: a quoted field must end"),
        (f"{HEADER}\nb\0,0,3,4\nc\0".encode("utf-16"), "is not a CSV file in UTF-8"),
        (b"id,lower,upper,size\n\xff,0,3,4\n", "is not a CSV file in UTF-8"),
        (f'{HEADER}\n"{"x" * 200_000}",0,3,4\n', "column `id`: the field is larger"),
    ],
)
def test_a_bad_file_is_refused_by_line_and_column(tmp_path, text, words):
    with pytest.raises(FormatError, match=words):
        read(tmp_path, text)


@given(text=st.text(max_size=60) | st.text('id,lowerupsz0123456789\r\n"-', max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    for content in (text, f"{HEADER}\n{text}"):
        path.write_text(content, encoding="utf-8", newline="")
        with contextlib.suppress(FormatError):
            assert read_csv(path)[0].names is not None
