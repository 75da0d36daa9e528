"""References of the documentation are valid: pages, headings, files, options, variables, names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "benchmarks/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("src", "tests", "benchmarks", "native", "release", "docs", "examples")
FILES = {
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}
CODE = "\n".join(
    (ROOT / name).read_text()
    for name in sorted(FILES)
    if name.endswith((".py", ".cpp", ".hpp")) and name != "tests/test_docs.py"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODED = re.compile(r"`([^`\n]+)`")
PLACE = re.compile(r"(?:[a-z0-9_]+/)+[a-z0-9_]+(?:\.[a-z]+)?|\w+\.(?:py|cpp|hpp|js)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
VARIABLE = re.compile(r"\bTIGHTSHIP_\w+")
NAME = re.compile(r"\btightship(?!\.(?:toml|lock)\b)(?:\.\w+)+")

OF_OTHERS = {
    "--target": "pip",
    **dict.fromkeys(("--cpuset-cpus", "--memory", "--memory-swap"), "docker"),
    **dict.fromkeys(("--rm", "--read-only", "--tmpfs"), "docker"),
    "_memory_viz.py": "torch",
    **dict.fromkeys(("--http-port", "--http-address", "--grpc-port", "--grpc-address"), "Triton"),
    **dict.fromkeys(("--metrics-port", "--exit-on-error", "--strict-readiness"), "Triton"),
    **dict.fromkeys(("--exit-timeout-secs", "--trace-config"), "Triton"),
    "--cacert": "curl",
    **dict.fromkeys(("--user", "--scope"), "systemd-run"),
    **dict.fromkeys(("--grpc-use-ssl", "--grpc-server-cert", "--grpc-server-key"), "Triton"),
}
"""Names that no file of this repository defines, and the programs that do."""


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def dead_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if link.startswith("https://"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{named(page)} links to `{link}`"


def lost_names(page: Path) -> Iterator[str]:
    """Files, options, variables and Python names that it speaks of, and that are not there."""
    text = page.read_text()
    for place in CODED.findall(text):
        if PLACE.fullmatch(place) and not is_place(place) and place not in OF_OTHERS:
            yield f"{named(page)} speaks of the file `{place}`"
    for option in OPTION.findall(text):
        if f'"{option}"' not in CODE and option not in OF_OTHERS:
            yield f"{named(page)} speaks of the option `{option}`"
    for variable in VARIABLE.findall(text):
        if variable not in CODE:
            yield f"{named(page)} speaks of the variable `{variable}`"
    for name in NAME.findall(text):
        if not is_name(name):
            yield f"{named(page)} speaks of `{name}`"


def is_place(place: str) -> bool:
    """Whether it ends the path of a file, with or without its suffix, or of a folder."""
    return any(
        f"/{path}".endswith(f"/{place}")
        for name in FILES
        for path in (name, name.rpartition(".")[0], *map(str, Path(name).parents))
    )


def is_name(name: str) -> bool:
    """Whether its first parts are a module, and the others words of it."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module = f"src/{'/'.join(parts[:count])}"
        for file in (f"{module}.py", f"{module}/__init__.py", f"{module}.pyi"):
            if file in FILES:
                words = set(re.findall(r"\w+", (ROOT / file).read_text()))
                return words.issuperset(parts[count:])
    return False


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    assert [*dead_links(page), *lost_names(page)] == []


def test_what_is_gone_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n[here](#one-heading) [gone](#two) [lost](lost.md) `planner/plan.py`\n"
        "`planner/plam.py` `--minimise` `TIGHTSHIP_MIN_MEMORY` `tightship.load` `tightship.lode`\n"
    )
    said = " ".join([*dead_links(page), *lost_names(page)])
    gone = ["#two", "lost.md", "plam.py", "--minimise", "TIGHTSHIP_MIN_MEMORY", "tightship.lode"]
    assert said.count("page.md") == len(gone)
    assert all(each in said for each in gone)
