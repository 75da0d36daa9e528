from hypothesis import given
from hypothesis import strategies as st

from tightship.view.table import WIDTH_MAX, Column, table
from tightship.view.text import display_width

COLUMNS = [Column("tensor"), Column("made by"), Column("size", number=True)]
NAMES = st.one_of(st.text(max_size=300), st.text("中文カナ🚢", max_size=120))


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 10**12).map(str)), max_size=5))
def test_no_line_is_wider_than_the_limit(rows):
    lines = table(COLUMNS, rows, indent=2)
    assert len(lines) == len(rows) + 2
    assert all(display_width(line) <= WIDTH_MAX for line in lines)


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 10**12)), min_size=1, max_size=5))
def test_numbers_are_whole_and_end_in_one_column(rows):
    lines = table(COLUMNS, [(a, b, str(size)) for a, b, size in rows])
    for line, (_, _, size) in zip(lines[2:], rows, strict=True):
        assert line.split()[-1] == str(size)
        assert display_width(line) == display_width(lines[1])


def test_the_widest_text_gives_way_first():
    lines = table(COLUMNS, [("n" * 200, "Conv", "12")])
    assert "Conv" in lines[2]
    assert "…" in lines[2]
    assert display_width(lines[2]) == WIDTH_MAX


def test_text_goes_left_and_numbers_go_right():
    lines = table(COLUMNS, [("a", "Conv", "1"), ("bb", "Relu", "1000")])
    assert lines == [
        "tensor  made by  size",
        "──────  ───────  ────",
        "a       Conv        1",
        "bb      Relu     1000",
    ]
