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
PACKAGES = ("tightship", "numpy", "onnx", "onnxruntime")


def facts() -> dict[str, object]:
    """When, which commit, on what machine, with which versions, by which command."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "command": command(),
        "cpu": cpu_model(),
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
    """How this process was called; folders given by an absolute path are left out."""
    kept = [argument for argument in sys.argv[1:] if not Path(argument).is_absolute()]
    return " ".join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *kept])


def commit() -> str:
    """Short hash, `+` after it where tracked files differ; `unknown` outside a checkout."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=9", "--dirty=+", "--exclude=*"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return described.stdout.strip() or "unknown"


def cpu_model() -> str:
    """As the kernel names it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def version_of(name: str) -> str:
    """The version of an installed package; `source` where only its folder is on the path."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "source"
