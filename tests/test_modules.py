"""Modules have a test file at the mirrored place, or the suite of their folder reaches them."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tightship.graph.operators.table import FAMILIES, PACKAGES, rows

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TABLE = "tightship.graph.operators.table"
WITHOUT_MAX = 385
"""Modules without a test file of their own, which may only become fewer."""
SUITES = {
    "tightship.backend": "tests/backend",
    "tightship.forks": "tests/driver/models",
    "tightship.gradients": "tests/test_public_api.py",
    "tightship.graph.cut": "tests/cost",
    "tightship.graph.tiles": "tests/cost",
    "tightship.public_calls": "tests/cli",
    "tightship.torch_compile": "tests/frontend/torch",
    "tightship.training.open_steps": "tests/frontend/torch",
    "tightship.types": "tests/test_public_api.py",
    "tightship.view.timing": "tests/engine/run",
    "tightship.view.timing_table": "tests/engine/run",
    "tightship.view.trace_events": "tests/engine/run",
}
"""Suites of modules that are tested elsewhere than in the folder of their name."""


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


@cache
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


@cache
def without_own_test() -> list[str]:
    """Modules that have no test file, but for packages, which only name what is in them."""
    entries = ("__init__", "__main__")
    return sorted(n for n, p in modules().items() if p.stem not in entries and not has_own_test(n))


def suites(name: str) -> list[str]:
    """Folders of tests that mirror those of a module, the next one first; or what `SUITES` has."""
    parts = name.split(".")[1:-1]
    folders = ["/".join(["tests", *parts[:count]]) for count in range(len(parts), 0, -1)]
    return SUITES.get(name, "").split() or [each for each in folders if (ROOT / each).is_dir()]


def test_every_module_has_a_test_of_its_own_or_a_suite_that_reaches_it() -> None:
    found = [n for n in without_own_test() if not any(n in reached(s) for s in suites(n))]
    assert found == [], "give these a test file, or those that belong to another suite a line"


def test_modules_without_a_test_of_their_own_only_become_fewer() -> None:
    count = len(without_own_test())
    assert count == WITHOUT_MAX, f"`WITHOUT_MAX` is the number of them, {count}; it may not grow"


def test_every_line_of_the_suites_is_needed() -> None:
    assert set(SUITES) <= set(without_own_test())
    assert all((ROOT / each).exists() for suite in SUITES.values() for each in suite.split())


def test_a_suite_reaches_what_its_tests_import_and_no_more() -> None:
    assert "tightship.planner.verify" in reached("tests/planner")
    assert "tightship.driver.oip.monitor" not in reached("tests/planner")
