"""The site builds without a warning, whole, and fetches nothing from other hosts."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.fences import ROOT

MISSING = [name for name in ("mkdocs", "material", "mkdocstrings") if find_spec(name) is None]
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"'\s>]*)"
    r"|<link\b(?![^>]*\brel=[\"']?(?:next|prev|canonical))[^>]*"
    r"\bhref=[\"']?((?:https?:)?//[^\"'\s>]*)"
    r"|@import\s+(?:url\()?[\"']?((?:https?:)?//[^\"')\s]*)"
    r"|url\(\s*[\"']?((?:https?:)?//[^\"')\s]*)"
)
"""Addresses that a browser would fetch from other hosts: scripts, pictures, styles and fonts."""


def fetched(text: str) -> list[str]:
    return ["".join(groups) for groups in FETCHED.findall(text)]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site."""
    if MISSING:
        pytest.skip(f"the extra `docs` is not installed: {', '.join(MISSING)} missing")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page.with_suffix(".html")).is_file()] == []
    assert (site / "files/examples/wsgi.py").read_bytes() == (
        ROOT / "examples/wsgi.py"
    ).read_bytes()


def test_nothing_is_fetched_from_other_hosts(site: Path) -> None:
    texts = {path: path.read_text() for path in site.rglob("*") if path.suffix in {".html", ".css"}}
    assert len(texts) > 30
    found = {path.name: fetched(text) for path, text in texts.items()}
    assert {name: urls for name, urls in found.items() if urls} == {}
    # The theme's script would fetch a library for such diagrams.
    assert not any('class="mermaid"' in text for text in texts.values())


def test_docstrings_and_modules_are_in_it(site: Path) -> None:
    python = (site / "reference/python.html").read_text()
    for name in (
        "tightship.load",
        "tightship.Trainer.step",
        "tightship.errors.GraphError",
    ):
        assert f'id="{name}"' in python
    assert "tightship.planner.placements" in (site / "reference/modules.html").read_text()


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://a.b/c.js"></script>',
        '<link rel="stylesheet" href="//fonts.b/css">',
        "@import url(https://a.b/c.css)",
        "src: url('https://a.b/c.woff')",
    ],
)
def test_what_is_fetched_is_seen(text: str) -> None:
    assert len(fetched(text)) == 1


@pytest.mark.parametrize("text", ['<a href="https://a.b">', '<link rel="next" href="a.html">'])
def test_links_to_follow_are_not(text: str) -> None:
    assert fetched(text) == []
