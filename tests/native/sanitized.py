"""Programs of the core's sources, compiled with a sanitizer."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
LIBRARIES = {"thread": "libtsan.so", "address,undefined": "libasan.so"}


def require_sanitizer(name: str) -> None:
    """Skips the test where the compiler comes without the sanitizer's library."""
    found = shutil.which("g++") and subprocess.run(
        ["g++", f"-print-file-name={LIBRARIES[name]}"], capture_output=True, text=True, check=True
    )
    if not found or not Path(found.stdout.strip()).is_absolute():
        pytest.skip(f"there is no g++ with the library of -fsanitize={name}")


def launcher() -> list[str]:
    """The command before the compiler's: a cache of what it has compiled, where there is one."""
    found = shutil.which("ccache")
    return [found] if found else []


def flags(sanitizer: str) -> list[str]:
    """Return the flags that everything is compiled and linked with."""
    return ["-g", "-O1", "-std=c++20", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]


def program(sources: Iterable[Path], sanitizer: str, folder: Path) -> Path:
    """The sources as one program."""

    def compiled(source: Path) -> Path:
        made = folder / f"{source.parent.name}-{source.stem}.o"
        places = [f"-I{NATIVE / name}" for name in ("include", "src")]
        command = ["g++", *flags(sanitizer), *places, "-c", source, "-o", made]
        subprocess.run([*launcher(), *command], check=True)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, sources))
    made = folder / "program"
    libraries = ["-lpthread", "-ldl"]
    subprocess.run(["g++", *flags(sanitizer), *objects, "-o", made, *libraries], check=True)
    return made


def run_clean(*command: str | Path) -> str:
    """Return the output of a program that reports no fault."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    assert not done.stderr
    return done.stdout
