"""Imports of Python modules and includes of C++ files, read from the code."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.layers import ALLOWED
from tests.native_layers import NATIVE_ALLOWED

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tightship"
NATIVE = ROOT / "native"


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def module_name(path: Path, root: Path) -> str:
    """`planner.placements.order`; the empty name for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(code: str) -> Iterator[str]:
    """Full names of what the code imports, wherever it does."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def native_folder(path: Path) -> str:
    """Folder of a file of the C++ core, as `NATIVE_ALLOWED` names it; adaptors are resources."""
    headers = NATIVE / "include" / "tightship"
    within = path.relative_to(headers if path.is_relative_to(headers) else NATIVE / "src")
    if str(within) in NATIVE_ALLOWED:
        return str(within)
    folder = str(within.parent)
    return "" if folder == "." else folder if folder.startswith("kernels/") else within.parts[0]


def native_includes(path: Path) -> Iterator[Path]:
    """Files of the core that a file of it includes."""
    for name in re.findall(r'#include "([^"]+)"', path.read_text()):
        for base in (path.parent, NATIVE / "include", NATIVE / "src"):
            if (base / name).exists():
                yield (base / name).resolve()
                break


def native_files() -> list[Path]:
    """Sources and headers of the core."""
    folders = (NATIVE / "src", NATIVE / "include")
    return sorted(path for folder in folders for path in folder.rglob("*.?pp"))


def room(module: str) -> str:
    """The row of `ALLOWED` that a module falls under, or the core."""
    if within(module, "_core"):
        return "_core"
    return max((row for row in ALLOWED if not row or within(module, row)), key=len)


def printed() -> Iterator[str]:
    """Lines of rooms and of what they import, each with the number of imports."""
    found: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for path in sorted(SOURCE.rglob("*.py")):
        own = room(module_name(path, SOURCE))
        for name in imports(path.read_text()):
            if name.startswith("tightship.") and (other := room(name[10:])) != own:
                found[own or "tightship"][other or "tightship"] += 1
    for path in native_files():
        for included in native_includes(path):
            if (folder := native_folder(path)) != (other := native_folder(included)):
                found[f"native/{folder}"][f"native/{other}"] += 1
    for name in sorted(found):
        yield f"{name}: {', '.join(f'{other} {n}' for other, n in sorted(found[name].items()))}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in printed())
