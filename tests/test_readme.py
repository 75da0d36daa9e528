"""The README's figures are those of the records."""

import pytest
from benchmarks import readme


def test_the_tables_of_the_readme_are_made_from_the_newest_records() -> None:
    text = readme.README.read_text(encoding="utf-8")
    assert set(readme.TABLES) == {found[2] for found in readme.BLOCK.finditer(text)}
    assert readme.rendered(text) == text, "run `python -m benchmarks.readme`"


def test_a_figure_that_differs_is_written_anew() -> None:
    text = readme.README.read_text(encoding="utf-8")
    other = text.replace("| ResNet-50 | **", "| ResNet-50 | **9", 1)
    assert other != text
    assert readme.rendered(other) == text


def test_a_marker_that_names_no_table_is_refused() -> None:
    with pytest.raises(KeyError, match="prices"):
        readme.rendered("<!-- prices -->\n<!-- end -->")
