"""Hooks of MkDocs: files beside `docs` that pages link to, and the list of modules."""

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.site import modules  # noqa: E402 - after its folder is on the path

OUTSIDE = re.compile(r"\]\((?:\.\./)+((?:benchmarks|examples|[A-Z])[^)#\s]*)(#[^)\s]*)?\)")
"""Links to files beside `docs`: the README, notices, examples and benchmarks."""
MODULES = "reference/modules.md"


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:  # noqa: ANN401
    """Rewrite links that leave `docs`, and append the list of modules to its page."""
    up = "../" * page.file.src_uri.count("/")
    text = OUTSIDE.sub(lambda found: f"]({up}files/{copied(found[1])}{found[2] or ''})", markdown)
    return text + modules.listing() if page.file.src_uri == MODULES else text


def on_files(files: Any, *, config: Any) -> Any:  # noqa: ANN401
    """Add the files beside `docs` that pages link to; a folder becomes a page with its files."""
    from mkdocs.structure.files import File

    texts = [each.content_string for each in files.documentation_pages()]
    for name in sorted({found[1] for text in texts for found in OUTSIDE.finditer(text)}):
        for source in sorted((ROOT / name).iterdir()) if (ROOT / name).is_dir() else [ROOT / name]:
            path = f"files/{source.relative_to(ROOT).as_posix()}"
            text = source.read_text(encoding="utf-8").replace("](../docs/", "](../../")
            files.append(File.generated(config, path, content=text))
        if (ROOT / name).is_dir():
            listed = (f"- [{each.name}]({each.name})" for each in sorted((ROOT / name).iterdir()))
            text = "\n".join([f"# {name}", "", *listed])
            files.append(File.generated(config, f"files/{copied(name)}", content=text))
    return files


def copied(name: str) -> str:
    """Path below `files` in the site: that of a folder is a page that lists its files."""
    return f"{name}/index.md" if (ROOT / name).is_dir() else name
