"""Memory of a process that loads a model and runs it, against ONNX Runtime.

    python -m benchmarks.bench_memory
    python -m benchmarks.bench_memory --models resnet50 --quick

A fresh process for every figure. ONNX Runtime runs with its defaults and with settings that
spare memory; the best of them is found for each model, once among settings alone, once with the
file rewritten too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import models, ort_file, record
from benchmarks.models import Stored

MIB = 1 << 20
MARGIN_BYTES = 4 * MIB

Figures = Mapping[str, float]

AS_GIVEN = (
    "ort-noarena-nopattern",
    "ort-noarena-nopattern-basic",
    "ort-noarena-nopattern-noprepack-asis",
)
MAPPED = (
    "ort-nopattern-noprepack-basic",
    "ort-nopattern-device-noprepack-extended",
)
OPTIMISED = ("ort-nopattern-asis", "ort-nopattern-noprepack-asis")
"""Settings by the file they go with: as it is, weights mapped, optimised and packed beforehand.
These are what was best on some model of all that `contender` knows."""


@dataclass(frozen=True, slots=True)
class Process:
    """Figures of one process; `file` names the model that it loaded."""

    contender: str
    file: str
    figures: Figures

    @property
    def high_water_bytes(self) -> float:
        """The most it had resident."""
        return self.figures["high_water_bytes"]


@dataclass(frozen=True, slots=True)
class Row:
    """Processes compared on one model.

    `limited` says how the run ended that may reserve `planned_bytes` and 4 MiB.
    """

    model: str
    tightship: Process
    default: Process
    best_as_given: Process
    best_rewritten: Process | None
    limited: str


def measured(contender: str, stored: Stored, model: Path, file: str) -> Process | None:
    """Figures of a process; None where the contender cannot run the file."""
    done = process(contender, model, stored.feeds)
    if done.returncode != 0:
        print(f"{contender} on {model.name}: {last_line(done.stderr)}", file=sys.stderr)
        return None
    return Process(contender, file, json.loads(done.stdout))


def process(
    contender: str, model: Path, feeds: Path, *limit: str
) -> "subprocess.CompletedProcess[str]":
    """Run `resident` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.resident", contender, str(model), str(feeds), *limit],
        cwd=record.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def last_line(text: str) -> str:
    """Return the last line of a failed process."""
    return (text.strip().splitlines() or ["no message"])[-1]


def limited(stored: Stored, planned_bytes: int) -> str:
    """Return how Tightship ends if it may reserve no more than the plan and the margin."""
    done = process("tightship", stored.model, stored.feeds, str(planned_bytes + MARGIN_BYTES))
    return "runs" if done.returncode == 0 else last_line(done.stderr)


def best(contenders: Sequence[str], stored: Stored, model: Path, file: str) -> list[Process]:
    """The leanest of several, in a list that is empty where none runs."""
    found = [measured(contender, stored, model, file) for contender in contenders]
    return sorted(filter(None, found), key=lambda process: process.high_water_bytes)[:1]


def rewritten(stored: Stored, folder: Path) -> list[Process]:
    """The leanest that ONNX Runtime gets when the file may be rewritten for it."""
    mapped, optimised = folder / "mapped.onnx", folder / "optimised.onnx"
    ort_file.with_external_weights(stored.model, mapped)
    found = best(MAPPED, stored, mapped, "weights mapped")
    subprocess.run(
        [sys.executable, "-m", "benchmarks.ort_file", str(stored.model), str(optimised)],
        cwd=record.ROOT, check=True,
    )  # fmt: skip
    found += best(OPTIMISED, stored, optimised, "optimised, weights mapped")
    for path in folder.iterdir():
        path.unlink()
    return sorted(found, key=lambda process: process.high_water_bytes)[:1]


def compared(name: str, folder: Path, *, rewrite: bool) -> Row:
    """All figures of one model."""
    stored = models.stored(name, folder)
    own = measured("tightship", stored, stored.model, "as given")
    default = measured("ort", stored, stored.model, "as given")
    if own is None or default is None:
        message = f"`{name}` cannot be compared: a process failed."
        raise ValueError(message)
    given = best(AS_GIVEN, stored, stored.model, "as given")
    with tempfile.TemporaryDirectory(dir=folder) as other:
        found = rewritten(stored, Path(other)) if rewrite else []
    verdict = limited(stored, int(own.figures["planned_bytes"]))
    leanest = min((default, *given), key=lambda process: process.high_water_bytes)
    return Row(name, own, default, leanest, found[0] if found else None, verdict)


HEADER = (
    f"{'MB':<16}{'tightship':>9}{'gain':>7}{'planned':>8}{'data':>7}"
    f"{'ORT':>8}{'ratio':>7}{'best':>8}{'ratio':>7}{'rewrit.':>8}{'ratio':>7}  limit"
)


def line(row: Row) -> str:
    """A row of the table; amounts in MB of 10**6 bytes."""
    own = row.tightship
    gain, planned, data = (
        own.figures[name] / 1e6 for name in ("load_gain_bytes", "planned_bytes", "data_gain_bytes")
    )
    text = (
        f"{row.model:<16}{own.high_water_bytes / 1e6:>9.1f}{gain:>7.1f}{planned:>8.1f}{data:>7.1f}"
    )
    for other in (row.default, row.best_as_given, row.best_rewritten):
        if other is None:
            text += f"{'-':>8}{'-':>7}"
            continue
        ratio = own.high_water_bytes / other.high_water_bytes
        text += f"{other.high_water_bytes / 1e6:>8.1f}{ratio:>7.2f}"
    return f"{text}  {row.limited[:40]}"


def settings(rows: Sequence[Row]) -> str:
    """Describe the settings of the best figures, and how long a run took with them."""
    lines = []
    for row in rows:
        lines.append(f"{row.model}: tightship {row.tightship.figures['run_ms']} ms a run")
        for other in (row.default, row.best_as_given, row.best_rewritten):
            if other is not None:
                time_ms = other.figures["run_ms"]
                lines.append(f"    {other.contender}, {other.file}: {time_ms} ms a run")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_memory")
    parser.add_argument("--models", default="all", help="comma-separated; light, quick, all")
    parser.add_argument("--folder", type=Path, help="keep the models here between runs")
    parser.add_argument("--quick", action="store_true",
                        help="no file is rewritten, nothing recorded")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a table")
    options = parser.parse_args()
    rows: list[Row] = []
    if not options.json:
        print(HEADER)
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in models.chosen(options.models):
            try:
                rows.append(compared(name, folder, rewrite=not options.quick))
            except ValueError as error:
                print(error, flush=True)
                continue
            print(json.dumps(asdict(rows[-1])) if options.json else line(rows[-1]), flush=True)
            if not options.folder:
                for path in folder.iterdir():
                    path.unlink()
    if not options.json:
        print(settings(rows))
    if not options.quick:
        path = record.append("bench_memory", {"rows": [asdict(row) for row in rows]})
        print(f"recorded in {path.relative_to(record.ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
