"""Threads on memory resources, the sources compiled with sanitizers.

    python -m pytest -m slow tests/native/test_resource_stress.py

Needs g++ with libtsan and libasan; a minute for each.
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
SOURCES = (
    Path(__file__).with_name("stress_resource.cpp"),
    *sorted((NATIVE / "src/resource").rglob("*.cpp")),
    *sorted((NATIVE / "src").glob("os*.cpp")),
)
STEPS = {"thread": 6_000, "address,undefined": 30_000}


def has_sanitizer(name: str) -> bool:
    """Whether the compiler comes with the sanitizer's library."""
    if shutil.which("g++") is None:
        return False
    library = {"thread": "libtsan.so", "address,undefined": "libasan.so"}[name]
    found = subprocess.run(
        ["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True
    )
    return Path(found.stdout.strip()).is_absolute()


def compiled(source: Path, flags: list[str], folder: Path) -> Path:
    """The object file of one source."""
    made = folder / f"{source.stem}.o"
    subprocess.run(["g++", *flags, f"-I{NATIVE / 'include'}", "-c", source, "-o", made], check=True)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", STEPS)
def test_threads_stress_every_resource_clean(sanitizer, tmp_path):
    if not has_sanitizer(sanitizer):
        pytest.skip(f"there is no g++ with the library of -fsanitize={sanitizer}")
    flags = ["-g", "-O1", "-std=c++20", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compiled(source, flags, tmp_path), SOURCES))
    program = tmp_path / "stress"
    subprocess.run(["g++", *flags, *objects, "-o", program, "-lpthread"], check=True)
    for seed in ("1", "2"):
        done = subprocess.run([program, str(STEPS[sanitizer]), seed], capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        assert "scarce" in done.stdout
        assert not done.stderr
