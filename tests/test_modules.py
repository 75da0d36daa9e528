"""Modules have a test file at the mirrored place, or a suite in `covered` that covers it."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.covered import COVERED
from tightship.graph.operators.table import FAMILIES, PACKAGES, rows

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TABLE = "tightship.graph.operators.table"
LISTED_MAX = 395
"""Modules in `COVERED`, which may only become fewer."""


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in (SOURCE / "tightship").rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere, or takes names from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & modules().keys()


@cache
def steps() -> Mapping[str, set[str]]:
    """Imports of each module; the table also imports modules that its rows name as text."""
    found = {name: imported(path) for name, path in modules().items()}
    families = " ".join(FAMILIES.values()).split()
    found[TABLE] |= {f"tightship.graph.operators.{family}" for family in families}
    for domain in FAMILIES:
        for row in rows(domain).values():
            for column, package in PACKAGES.items():
                place = getattr(row, column)
                if isinstance(place, str) and place:
                    module = place.partition(":")[0].rpartition(".")[0]
                    found[TABLE].add(f"tightship.{package}.{module}")
    return found


def room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def reached(suite: str) -> set[str]:
    """Modules within four imports of a suite, and what these import within their rooms."""
    where = ROOT / suite
    waiting = [name for path in ([where] if where.is_file() else where.rglob("*.py"))
            for name in imported(path)]  # fmt: skip
    for _ in range(3):
        waiting += {each for name in waiting for each in steps()[name]}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in steps()[name] if name == TABLE or room(each) == room(name)]
    return found


def has_own_test(name: str) -> bool:
    path = modules()[name].relative_to(SOURCE / "tightship")
    return (ROOT / "tests" / path.parent / f"test_{path.stem.lstrip('_')}.py").is_file()


def covered_by(suite: str) -> list[str]:
    """Modules that the table gives to a suite."""
    found, package = [], ""
    for word in COVERED[suite][1].split():
        if word.endswith(":"):
            package = word.removesuffix(":").strip(".")
        else:
            found.append(".".join(filter(None, ("tightship", package, word))))
    return found


LISTED = [name for suite in COVERED for name in covered_by(suite)]


def test_every_module_has_a_test_of_its_own_or_a_suite() -> None:
    is_entry = {name for name, path in modules().items() if path.stem in ("__init__", "__main__")}
    without = {name for name in modules().keys() - is_entry if not has_own_test(name)}
    assert sorted(without - set(LISTED)) == []
    assert sorted(set(LISTED) - without) == [], "these have a test of their own, or are gone"


def test_the_table_has_a_module_once_and_only_shrinks() -> None:
    assert sorted(LISTED) == sorted(set(LISTED))
    assert len(LISTED) == LISTED_MAX, "`LISTED_MAX` is the number of modules in the table"


@pytest.mark.parametrize("suite", COVERED)
def test_a_suite_has_tests_and_reaches_what_it_covers(suite: str) -> None:
    where = ROOT / suite
    assert where.is_file() or list(where.rglob("test_*.py"))
    assert sorted(set(covered_by(suite)) - reached(suite)) == []
