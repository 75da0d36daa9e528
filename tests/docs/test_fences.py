"""The comparison of shown and printed output sees what differs."""

import pytest

from tests.docs.fences import differences, fences, sessions

PRINTED = "arena       5.21 MiB  of it\n────────  ──\nmedian 12.5 ms, 1 thread(s)\n"


@pytest.mark.parametrize(
    "shown",
    [
        "arena  5.00 MiB  of it\n─── ───\nmedian 99.1 ms, 1 thread(s)",
        "...\nmedian 12.5 ms, 1 thread(s)",
        "arena [...] of it",
    ],
)
def test_equal_words_and_close_sizes_pass(shown: str) -> None:
    assert differences(shown, PRINTED) == []


@pytest.mark.parametrize(
    "shown",
    [
        "arena 11.21 MiB of it",
        "arenas 5.21 MiB of it",
        "median 12.5 ms, 1 thread(s)\narena 5.21 MiB of it",
        "median 12.5 ms",
        "median 12.5 ms, 2 thread(s)",
        "arena 5.21 KiB of it",
    ],
)
def test_other_words_sizes_or_order_are_seen(shown: str) -> None:
    assert differences(shown, PRINTED) != []


def test_blocks_sessions_and_reasons_are_read(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: has no GPU -->\n```python\n1 / 0\n```\n\n"
        "<!-- needs numpy -->\n```python\n1\n```\n<!-- needs nothing_there -->\n```python\n2\n```\n"
        "```console\n$ one\na\nb\n$ two\n```\n",
        encoding="utf-8",
    )
    blocks = fences(page, "python")
    assert [block.text for block in blocks] == ["1 / 0", "1", "2"]
    assert [block.line for block in blocks] == [3, 8, 12]
    assert [block.reason for block in blocks] == ["has no GPU", "", "nothing_there"]
    assert list(sessions(page)) == [("one", "a\nb"), ("two", "")]
