"""Symbols that a library of a wheel leaves to others: only versioned ones are sure to be there."""

from pathlib import Path

from release.commands import ReleaseError, run

PYTHON = ("Py", "_Py")
LEFT = "U"
"""Mark of `nm` for a symbol that the library does not define; a weak one may stay undefined."""


def unresolved(library: Path) -> list[str]:
    """Name the symbols that a library takes from others without saying a version of them.

    auditwheel checks versions, so that a symbol without one escapes it: a linker writes such where
    no library that it knows has the symbol. Those of Python have no versions.
    """
    lines = run(["nm", "-D", "--undefined-only", library], library.parent).splitlines()
    symbols = [line.split()[-1] for line in lines if line.split()[-2] == LEFT]
    return sorted(name for name in symbols if "@" not in name and not name.startswith(PYTHON))


def check_symbols(library: Path) -> None:
    """Refuse a library with an unresolved symbol.

    Raises:
        ReleaseError: It names the symbol.
    """
    missing = unresolved(library)
    if missing:
        raise ReleaseError(
            f"{library.name} needs `{missing[0]}`, which the glibc of the wheel's tag lacks. Add "
            "it to release/toolchain/newer_glibc.cpp, or do without it."
        )
