"""Figures of the README and of the page of measurements are those of the records."""

import re

import pytest
from benchmarks import readme


@pytest.mark.parametrize("page", readme.PAGES, ids=lambda page: page.name)
def test_tables_are_made_from_the_newest_records(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert readme.rendered(text) == text, "run `python -m benchmarks.readme`"


def test_every_table_is_on_a_page() -> None:
    texts = [page.read_text(encoding="utf-8") for page in readme.PAGES]
    found = [each[2] for text in texts for each in readme.BLOCK.finditer(text)]
    assert sorted(found) == sorted(readme.TABLES)


def test_the_readme_is_short() -> None:
    assert len(readme.README.read_text(encoding="utf-8").splitlines()) <= 150


def test_its_table_names_processors_and_has_ties_or_losses() -> None:
    table = readme.models_table()
    assert "cores; 20" in table
    assert "commit " in table
    memory = [
        [int(re.match(r"\d+", cell.strip())[0]) for cell in line.split("|")[2:6]]
        for line in table.splitlines()[2:8]
    ]
    assert any(row[0] >= row[3] for row in memory) or " 1.0" in table


@pytest.mark.parametrize("page", readme.PAGES, ids=lambda page: page.name)
def test_a_figure_that_differs_is_written_anew(page) -> None:
    text = page.read_text(encoding="utf-8")
    other = re.sub(r"^\| ResNet-50 \| ", "| ResNet-50 | 9", text, count=1, flags=re.MULTILINE)
    assert other != text
    assert readme.rendered(other) == text


def test_a_marker_that_names_no_table_is_refused() -> None:
    with pytest.raises(KeyError, match="prices"):
        readme.rendered("<!-- prices -->\n<!-- end -->")
