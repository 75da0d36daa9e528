"""Imports and includes go down the tables of `layers`."""

import sys

import pytest

from tests.imports import (
    SOURCE,
    imports,
    module_name,
    native_files,
    native_folder,
    native_includes,
    within,
)
from tests.layers import ALLOWED, FOREIGN
from tests.native_layers import NATIVE_ALLOWED


def allowed(module: str) -> list[str]:
    rule = max((prefix for prefix in ALLOWED if not prefix or within(module, prefix)), key=len)
    assert rule or not module, f"`{module}` is in no layer: give it a line in the table"
    prefixes = ALLOWED[rule].split()
    raises = module not in {"errors", "public_calls", "wrong_arguments", "deprecated", "brief"}
    return [*prefixes, "public_calls", "brief"] if raises else prefixes


def violations(module: str, code: str) -> list[str]:
    """Imports of a module that the tables do not allow."""
    found = []
    for name in imports(code):
        top, _, rest = name.partition(".")
        if top == "tightship":
            is_fine = any(within(rest, prefix) for prefix in allowed(module))
        else:
            users = FOREIGN.get(top, "").split()
            is_fine = top in sys.stdlib_module_names or any(within(module, u) for u in users)
        if not is_fine:
            found.append(f"{module or 'tightship'} imports {name}")
    return found


def test_every_import_goes_down() -> None:
    found = [
        violation
        for path in sorted(SOURCE.rglob("*.py"))
        for violation in violations(module_name(path, SOURCE), path.read_text())
    ]
    assert found == []


def test_every_line_of_the_tables_is_about_something() -> None:
    modules = {module_name(path, SOURCE) for path in SOURCE.rglob("*.py")} | {
        "_core",
        "_core.first_overlap",
    }
    known = modules | {"__version__"}
    named = {prefix for line in (*ALLOWED.values(), *FOREIGN.values()) for prefix in line.split()}
    assert [name for name in ALLOWED if name not in known] == []
    assert [name for name in named if name not in known] == []


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("planner.verify", "from tightship.planner.placements.order import by_size"),
        ("planner.verify", "from tightship._core import place_best_fit"),
        ("planner.problem", "from tightship.graph import Graph"),
        ("graph.ir", "from tightship.planner import Problem"),
        ("graph.ir", "import onnx"),
        ("engine.run.executor", "import tightship.frontend.onnx"),
        ("engine.run.executor", "def run():\n    from tightship.model import Model"),
        ("engine.run.executor", "from tightship import model"),
        ("engine.run.executor", "import torch"),
        ("engine.lower.passes.fuse", "from tightship.engine.run.executor import execute"),
        ("frontend.onnx.reader", "from tightship.engine.program.program.program import Lowered"),
        ("view.svg", "from tightship.planner import Plan"),
        ("resource", "from tightship.graph import DType"),
        ("model", "from tightship.loading import load"),
        ("loading.budget", "from tightship.model.feeds import bind"),
        ("", "import numpy"),
    ],
)
def test_an_import_that_goes_up_is_found(module: str, code: str) -> None:
    assert len(violations(module, code)) == 1


def test_the_same_import_is_fine_where_it_goes_down() -> None:
    code = "def run():\n    from tightship.planner import Problem\n    import numpy"
    assert violations("engine.run.executor", code) == []


def test_a_module_in_no_layer_is_refused() -> None:
    with pytest.raises(AssertionError, match="`helpers` is in no layer"):
        violations("helpers", "from tightship.errors import GraphError")


def allowed_folders(folder: str) -> set[str]:
    row = "kernels/*" if folder.startswith("kernels/") and folder not in NATIVE_ALLOWED else folder
    return {folder, "", *NATIVE_ALLOWED[row].split()}


def test_every_include_of_the_core_goes_down() -> None:
    found = [
        f"{path.name} includes {included.name}"
        for path in native_files()
        for included in native_includes(path)
        if native_folder(included) not in allowed_folders(native_folder(path))
    ]
    assert found == []


def test_every_row_of_native_folders_is_about_something() -> None:
    folders = {native_folder(path) for path in native_files()}
    assert [row for row in NATIVE_ALLOWED if row != "kernels/*" and row not in folders] == []


def test_what_the_core_allows_has_no_cycle() -> None:
    assert all(
        folder not in allowed_folders(other)
        for folder in NATIVE_ALLOWED
        for other in NATIVE_ALLOWED[folder].split()
        if folder and folder != "kernels/*"
    )
