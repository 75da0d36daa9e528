"""Every row of the operator table names bodies that exist, and every body has a row."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tightship
from tightship._core import NativeKernel
from tightship.graph.operators import Operator, body, find, named, rows
from tightship.graph.operators.table import FAMILIES, PACKAGES

SOURCE = Path(tightship.__file__).parent
ROWS = [row for domain in FAMILIES for row in rows(domain).values()]


def places() -> dict[str, set[str]]:
    """Names of bodies by the module that they are in."""
    found: dict[str, set[str]] = {}
    for row in ROWS:
        for column, package in PACKAGES.items():
            place = getattr(row, column)
            if isinstance(place, str) and place:
                module, _, name = place.partition(":")[0].rpartition(".")
                found.setdefault(f"tightship.{package}.{module}", set()).add(name)
    return found


@pytest.mark.parametrize("column", PACKAGES)
def test_every_body_can_be_called(column: str) -> None:
    for domain in FAMILIES:
        for name in named(column, domain):
            assert callable(body(column, name, domain)), (column, name)


def test_an_operator_has_one_row() -> None:
    for domain, families in FAMILIES.items():
        modules = [import_module(f"tightship.graph.operators.{each}") for each in families.split()]
        names = [row.name for module in modules for row in module.ROWS]
        assert sorted(names) == sorted(rows(domain))
        assert all(row.domain == domain for row in rows(domain).values())


def imported_names() -> set[tuple[str, str]]:
    """Modules and names that a module imports from them, over all modules."""
    return {
        (node.module or "", alias.name)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_every_public_function_beside_a_body_is_of_use() -> None:
    """A body that no row names would never run."""
    used = imported_names()
    unused = []
    for module, bodies in places().items():
        tree = ast.parse(Path(import_module(module).__file__ or "").read_text())
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                known = node.name in bodies | read or (module, node.name) in used
                unused += [] if known else [f"{module}.{node.name}"]
    assert unused == []


def test_a_body_is_imported_at_its_first_use() -> None:
    code = """
import sys
from tightship.graph.operators import body, named
name = "tightship.engine.lower.native.ranks"
assert "TopK" in named("native") and body("native", "No") is None
assert name not in sys.modules
body("native", "TopK")
assert name in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


VARIANTS = {
    "BitShift": "ShiftLeft ShiftRight",
    "CastLike": "",
    "Clip": "Limit",
    "Gelu": "GeluTanh",
    "IsInf": "IsNegativeInf IsPositiveInf",
    "Mod": "Fmod",
}
"""Kernels of the core that serve an operator for some of its attributes, or always."""


def test_names_of_native_kernels_are_those_of_the_core() -> None:
    operators = {name for name, row in rows().items() if row.native.startswith("elementwise.")}
    variants = {name for names in VARIANTS.values() for name in names.split()}
    called_otherwise = {"BitShift", "CastLike"}
    assert set(NativeKernel.elementwise_names()) == operators - called_otherwise | variants
    assert set(VARIANTS) <= operators


def test_what_has_no_row_is_unknown() -> None:
    assert find("Relu", "elsewhere") == find("Unheard") == Operator("")
    assert body("numpy", "Relu", "elsewhere") is None
