"""Imports modules of a package when one of their names is first used.

A module stays resident until the process ends. A process that only runs a prepared model therefore
should not import the modules that lower and plan.
"""

import sys
from collections.abc import Callable
from importlib import import_module


def late_names(package: str, **modules: str) -> Callable[[str], object]:
    """Make the `__getattr__` of a package.

    Args:
        package: Name of the package.
        modules: For each module of the package, the names that it defines, separated by spaces.

    Returns:
        A function that imports the module that defines a name, stores the name in the package and
            returns it; it raises `AttributeError` for other names.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
