"""Implements `tightship share`: the memory of several processes with one model."""

import argparse
import signal
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightship.cli.output import show, show_json
from tightship.cli.peers import Contender, peers, saved
from tightship.cli.process import Usage, usage, usage_of_file
from tightship.cli.progress import Progress
from tightship.cli.workers import Asked, WorkerError, worker_alone, workers
from tightship.errors import InputError
from tightship.quantity import format_bytes
from tightship.view.table import Column, table
from tightship.view.text import printable, shorten

OURS = "Tightship"
RUNS = 5
PREPARED = ".tship"
AMOUNTS = ("RSS", "PSS", "USS")


@dataclass(frozen=True, slots=True)
class Measured:
    """Processes of one contender, measured at one moment: after their runs, while all are alive.

    Attributes:
        title: Name in tables.
        processes: Resident memory of each process.
        first_ns: Time of each process from loading to the first result, all loading at once.
        run_ns: Median time of runs, one process after another.
        file_bytes: Part of the processes' PSS that is the prepared file.
    """

    title: str
    processes: Sequence[Usage]
    first_ns: Sequence[int]
    run_ns: int
    file_bytes: int = 0

    @property
    def total(self) -> Usage:
        """Sums over all processes; only the sum of PSS counts no page twice."""
        return Usage(
            sum(each.rss_bytes for each in self.processes),
            sum(each.pss_bytes for each in self.processes),
            sum(each.uss_bytes for each in self.processes),
        )


def run(options: argparse.Namespace) -> int:
    """Measure a model in several processes, next to ONNX Runtime if it is installed; print it."""
    with _ended_by_signals(), tempfile.TemporaryDirectory(prefix="tightship-share-") as folder:
        found, failed = _measured(options, Path(folder))
    if options.json:
        show_json(_json(options, found, failed))
    else:
        show(_text(options, found, failed))
    return 0


def _measured(
    options: argparse.Namespace, folder: Path
) -> tuple[list[Measured], list[tuple[str, str]]]:
    """Measure each contender; also return the names and errors of peers that failed."""
    model = Path(options.file).absolute()
    if not model.is_file():
        what = "is not a file" if model.exists() else "does not exist"
        raise InputError(f"The model `{options.file}` {what}.")
    is_prepared = model.suffix == PREPARED
    if is_prepared and options.peers:
        raise InputError("`--peers` needs the ONNX file: ONNX Runtime reads no prepared model.")
    output = None if is_prepared else folder / f"{model.stem}{PREPARED}"
    job = {
        "model": str(model),
        "output": output and str(output),
        "folder": str(folder),
        "shapes": dict(options.shape),
        "threads": options.threads,
    }
    with Progress("preparing") as progress, worker_alone(f"{OURS}, preparing") as preparing:
        inputs = preparing.ask({"job": "prepare", **job}, progress)["inputs"]
    prepared = output or model
    ours = Contender(OURS, "tightship", prepared)
    found = [_together(ours, options, inputs)]
    failed: list[tuple[str, str]] = []
    wanted = () if is_prepared or options.start != "spawn" else peers(wanted=options.peers)
    for peer in wanted:
        try:
            with saved(peer, model, folder, options.threads) as contender:
                found.append(_together(contender, options, inputs))
        except WorkerError as error:
            failed.append((peer.title, str(error)))
    return found, failed


def _together(
    contender: Contender, options: argparse.Namespace, inputs: dict[str, str]
) -> Measured:
    job = {"job": "load", **contender.job(options.threads), "inputs": inputs}
    with (
        Progress(contender.title) as progress,
        workers(options.start, options.procs, contender.title) as group,
    ):
        for asked in group:
            asked.send(job)
        first = []
        for done, asked in enumerate(group):
            progress(done, len(group))
            first.append(asked.answer()["first_ns"])
        processes = [usage(asked.pid) for asked in group]
        files = [usage_of_file(asked.pid, contender.model).pss_bytes for asked in group]
        return Measured(contender.title, processes, first, _run_ns(group), sum(files))


def _run_ns(group: Sequence[Asked]) -> int:
    """Return the median time of runs, one process after another."""
    times = [
        time for asked in group for time in asked.ask({"job": "run", "repeat": RUNS})["run_ns"]
    ]
    return int(statistics.median(times))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into an exception, so that processes and files are cleaned up."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _text(
    options: argparse.Namespace, found: Sequence[Measured], failed: Sequence[tuple[str, str]]
) -> str:
    ours, *others = found
    lines = [
        f"{Path(options.file).name} in {options.procs} processes ({options.start}), "
        f"{options.threads} thread(s) each; the sum of PSS is what they take together",
        "",
        *_each_process(ours),
        "",
        f"The prepared model, which all processes map, is {format_bytes(ours.file_bytes)} of it.",
        "",
        *_each_contender(found),
    ]
    if others:
        least = min(others, key=lambda each: each.total.pss_bytes)
        ratio = ours.total.pss_bytes / least.total.pss_bytes
        lines += ["", f"{ratio:.2f} of the PSS of the leanest other: {least.title}."]
    lines += [shorten(printable(f"{title} failed: {text}"), 100) for title, text in failed]
    return "\n".join(lines) + "\n"


def _each_process(ours: Measured) -> list[str]:
    rows = [(str(number), *_amounts(each)) for number, each in enumerate(ours.processes, start=1)]
    columns = [Column("process"), *(Column(title, number=True) for title in AMOUNTS)]
    return table(columns, [*rows, ("sum", *_amounts(ours.total))], indent=2)


def _each_contender(found: Sequence[Measured]) -> list[str]:
    titles = (*AMOUNTS, "first result", "run")
    rows = [
        (each.title, *_amounts(each.total), _ms(max(each.first_ns)), _ms(each.run_ns))
        for each in found
    ]
    return table([Column("together"), *(Column(t, number=True) for t in titles)], rows, indent=2)


def _amounts(each: Usage) -> tuple[str, str, str]:
    return (
        format_bytes(each.rss_bytes), format_bytes(each.pss_bytes), format_bytes(each.uss_bytes),
    )  # fmt: skip


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.1f} ms"


def _json(
    options: argparse.Namespace, found: Sequence[Measured], failed: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "model": Path(options.file).name,
        "processes": options.procs,
        "start": options.start,
        "threads": options.threads,
        "contenders": [_row(each) for each in found],
        "failed": dict(failed),
    }


def _row(each: Measured) -> dict[str, Any]:
    def amounts(usage: Usage) -> dict[str, int]:
        return {
            "rss_bytes": usage.rss_bytes,
            "pss_bytes": usage.pss_bytes,
            "uss_bytes": usage.uss_bytes,
        }

    return {
        "title": each.title,
        **amounts(each.total),
        "file_pss_bytes": each.file_bytes,
        "first_ns": list(each.first_ns),
        "run_ns": each.run_ns,
        "processes": [amounts(process) for process in each.processes],
    }
