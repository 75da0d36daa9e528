"""Packages that only texts need, imported when one comes."""

from importlib import import_module
from types import ModuleType

from tightship.errors import InputError


def imported(name: str, extra: str = "text") -> ModuleType:
    """Import a package of an extra.

    Raises:
        InputError: It is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"Texts need the package `{error.name}`; pip install 'tightship[{extra}]', or give "
            + ("numbers of tokens." if extra == "text" else "no schema.")
        ) from None
