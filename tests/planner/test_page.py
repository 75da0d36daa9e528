"""What docs/planner.md shows is run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "planner.md"


def test_the_snippets_of_the_page_hold():
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), {})
