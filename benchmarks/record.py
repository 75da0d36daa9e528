"""Facts that a figure depends on, and the files that figures are kept in."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
ISAS = {"amx_bf16": "AMX", "avx512f": "AVX-512", "avx2": "AVX2", "sse4_1": "SSE4.1"}
"""Instruction sets by flags of the kernel, the widest first."""
PACKAGES = ("tightship", "numpy", "onnx", "onnxruntime")

# Installers compile modules; processes that benchmarks start must not do so each time they run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def facts() -> dict[str, object]:
    """Return date, commit, machine, versions and command."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "command": command(),
        "cpu": cpu_model(),
        "isa": cpu_isa(),
        "cpus": os.cpu_count(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in PACKAGES},
    }


@dataclass(frozen=True, slots=True)
class Line:
    """A line of `results/NAME.json`, the facts and the figures, that is written as a run goes on.

    A run that is cut short keeps what it has written.
    """

    path: Path
    start: int
    """Bytes before it."""
    facts: Mapping[str, object]

    def write(self, figures: Mapping[str, object]) -> None:
        """Put the figures in the place of what this line has held."""
        with self.path.open("a", encoding="utf-8") as file:
            file.truncate(self.start)
            file.write(json.dumps({**self.facts, **figures}) + "\n")


def begin(name: str) -> Line:
    """A line behind all others, with the facts as they are now; not written yet."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    return Line(path, path.stat().st_size if path.exists() else 0, facts())


def append(name: str, figures: Mapping[str, object]) -> Path:
    """Add one line, the facts and the figures, to `results/NAME.json`."""
    line = begin(name)
    line.write(figures)
    return line.path


def command() -> str:
    """Return the command line of this process, without folders given by an absolute path."""
    kept = [argument for argument in sys.argv[1:] if not Path(argument).is_absolute()]
    return " ".join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *kept])


def commit() -> str:
    """Short hash, `+` after it where tracked files differ; `unknown` outside a checkout.

    Records that earlier benchmarks of a series have added make no difference.
    """
    described = _git("describe", "--always", "--abbrev=9", "--exclude=*")
    changed = _git("diff", "--name-only", "HEAD", "--", ".", f":!{RESULTS.relative_to(ROOT)}")
    return f"{described}{'+' if changed else ''}" if described else "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def cpu_model() -> str:
    """Name of the processor, as the kernel has it."""
    return cpu_field("model name") or platform.processor()


def cpu_isa() -> str:
    """Widest of the instruction sets that kernels differ by; empty if none is known."""
    flags = cpu_field("flags").split()
    return next((name for flag, name in ISAS.items() if flag in flags), "")


def cpu_field(name: str) -> str:
    """Value of a field of the first processor in `/proc/cpuinfo`, or an empty text."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((ln.partition(":")[2].strip() for ln in lines if ln.startswith(name)), "")


def version_of(name: str) -> str:
    """The version of an installed package; `source` where only its folder is on the path."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "source"
