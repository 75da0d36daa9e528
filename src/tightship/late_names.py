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
        modules: For each module of the package, or with its whole name of another one, the names
            that it defines, separated by spaces. A module can be had by its own name, too.

    Returns:
        A function that imports the module that defines a name, stores the name in the package and
            returns it; it raises `AttributeError` for other names.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            return _old_name(package, name)
        found: object = getattr(import_module(_whole(package, homes[name])), name)
        setattr(sys.modules[package], name, found)
        return found

    return find


def _whole(package: str, module: str) -> str:
    """Return the whole name of a module of the package, or of another one."""
    return module if module.startswith("tightship.") else f"{package}.{module}"


def _old_name(package: str, name: str) -> object:
    """Return what a name of an earlier version stood for, with a warning.

    Raises:
        AttributeError: The package never had the name.
    """
    from tightship.deprecated import renamed, warn_of  # few programs use old names

    row = None if name.startswith("__") else renamed("name", name, package)
    if row is None:
        raise AttributeError(f"module `{package}` has no attribute `{name}`")
    # `from package import name` first looks whether there is such a name, and then asks for it.
    if sys._getframe(2).f_code.co_name != "_handle_fromlist":
        warn_of(row)
    return getattr(sys.modules[package], row.new)
