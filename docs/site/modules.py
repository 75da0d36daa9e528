"""Lists the modules of the package, each with the first sentence of its docstring.

python -m docs.site.modules
"""

import ast
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def listing() -> str:
    """Markdown with a table for each package."""
    packages = groupby(sorted(described()), key=lambda row: row[0])
    return "\n".join(
        "\n".join(
            [
                f"\n## `{package}`\n",
                "| module | purpose |",
                "|---|---|",
                *(
                    f"| {f'`{name}`' if name else 'the package'} | {text} |"
                    for _, name, text in rows
                ),
            ]
        )
        for package, rows in packages
    )


def described() -> Iterator[tuple[str, str, str]]:
    """Yield package, name and first sentence of every module; a package's own name is empty."""
    for path in SOURCE.rglob("*.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if text is not None:
            package = ".".join(path.parent.relative_to(SOURCE).parts)
            name = "" if path.stem == "__init__" else path.stem
            purpose = " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
            yield package, name, purpose


if __name__ == "__main__":
    sys.stdout.write(listing() + "\n")
