"""Names of a package whose modules are imported when they are first asked for.

A module stays resident as long as the process: one that only runs a prepared model has no use
for what lowers and plans.
"""

import sys
from collections.abc import Callable
from importlib import import_module


def late_names(package: str, **modules: str) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    Args:
        package: Its name.
        modules: Names of its modules, each with the names, parted by spaces, that it defines.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
