"""Renders the table of deprecated spellings, and writes it to its page.

python -m docs.site.deprecated
"""

from pathlib import Path

from tightship.deprecated import RENAMED

PAGE = Path(__file__).parents[1] / "reference" / "deprecated.md"
HEAD = """\
# Deprecated spellings

Generated from `tightship/deprecated.py` by `python -m docs.site.deprecated`. Each old spelling
works until the version in its row: in Python it issues a `DeprecationWarning` at the line that uses
it, on the command line a line on standard error. To find the uses in a program, run it with
`python -W error::DeprecationWarning`.

| kind | of | old | new | goes in |
|---|---|---|---|---|
"""


def page() -> str:
    """Markdown of the table."""
    rows = (
        f"| {row.kind} | {f'`{row.where}`' if row.where else ''} | `{row.old}` | `{row.new}` | "
        f"{row.until} |\n"
        for row in RENAMED
    )
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
