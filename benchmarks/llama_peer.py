"""Builds llama.cpp from the source package that vendors it, and a driver for bench_llama."""

import subprocess
import sys
import tarfile
from pathlib import Path

NAME = "llama-cpp-python"
PACKAGE = f"{NAME}==0.3.36"
OFF = (
    "CURL",
    "OPENSSL",
    "BUILD_TESTS",
    "BUILD_EXAMPLES",
    "BUILD_SERVER",
    "BUILD_UI",
    "BUILD_TOOLS",
)
LOADING = "    _tile_loadconfig(&tc);"
KEPT = '    __asm__ volatile("" :: "r"(&tc) : "memory");\n'
"""Statement without which GCC 12 leaves out most stores to the configuration of AMX's tiles."""


def driver(folder: Path) -> Path:
    """Return the driver in `folder`, which is built where it is missing. It takes ten minutes."""
    found = folder / "driver"
    if found.exists():
        return found
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "llama.cpp"
    if not source.exists():
        _unpack(folder, source)
    build = source / "build"
    options = [f"-DLLAMA_{name}=OFF" for name in OFF]
    _run("cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON",
         "-DBUILD_SHARED_LIBS=ON", *options)  # fmt: skip
    _run("cmake", "--build", build, "-j2", "--target", "llama")
    libraries = build / "bin"
    _run("gcc", "-O2", "-o", found, Path(__file__).with_name("llama_driver.c"),
         "-I", source / "include", "-I", source / "ggml" / "include", "-L", libraries,
         "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{libraries}")  # fmt: skip
    return found


def _unpack(folder: Path, source: Path) -> None:
    _run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", NAME,
         "-d", folder, PACKAGE)  # fmt: skip
    (archive,) = folder.glob("llama_cpp_python-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.glob("llama_cpp_python-*") if path.is_dir())
    (unpacked / "vendor" / "llama.cpp").rename(source)
    tiles = source / "ggml" / "src" / "ggml-cpu" / "amx" / "mmq.cpp"
    text = tiles.read_text(encoding="utf-8")
    tiles.write_text(text.replace(LOADING, KEPT + LOADING), encoding="utf-8")


def _run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)
