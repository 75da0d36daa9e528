"""Packages whose modules come when their names are asked for have all names that they list."""

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("tightship.graph", "tightship.planner")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_it_has_not_is_an_error_that_says_so(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module `{package}` has no attribute `nothing`"):
        importlib.import_module(package).nothing  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_all_names_can_be_had_one_after_another_and_none_is_a_module(package: str) -> None:
    code = (
        f"import types, {package} as package\n"
        "names = sorted(package.__all__)\n"
        "found = [getattr(package, name) for name in (*names, *names)]\n"
        "assert not any(isinstance(each, types.ModuleType) for each in found)\n"
        "assert found[: len(names)] == found[len(names) :]\n"
        f"from {package} import *"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
