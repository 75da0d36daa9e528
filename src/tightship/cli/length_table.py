"""Shows what a plan of a model with open lengths is for, and how its peak grows with each."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from tightship.lengths import FACTORS, LengthPeaks, OpenLengths
from tightship.loading.activations import chosen_passes
from tightship.loading.apart import is_fixed
from tightship.loading.settings import settings_of
from tightship.quantity import format_bytes
from tightship.view.table import WIDTH_MAX, Column, table
from tightship.view.text import printable, shorten

_SHOWN = 3
"""Open lengths that are shown; models have few, and each takes some plans."""
_BAR = 40
_MANY_STEPS = 300
"""Steps from which a plan takes so long that fewer are made."""
_FEW = (1, 4, 16)


def opened_for(options: argparse.Namespace, limit_bytes: int | None) -> OpenLengths | None:
    """Open the model if its file leaves lengths open; with a limit only if all are given.

    Raises:
        FormatError: The model cannot be read.
        InputError: The shapes do not fit.
    """
    if options.tune is not None:
        return None  # choices that were measured are for one shape
    without = chosen_passes(options.file, options.without, options.activations)
    workers = options.workers, options.workers_memory
    most = None if limit_bytes is None else limit_bytes - (options.dynamic_memory or 0)
    settings = settings_of({}, options.threads, without, workers, most, {})
    if Path(options.file).is_file() and is_fixed(options.file):
        return None  # without the modules that read models, so that another process plans this one
    found = OpenLengths._of(options.file, dict(options.shape), settings)
    if found is None or (limit_bytes is not None and found.are_chosen):
        return None
    return found


def text_of(model: OpenLengths, limit_bytes: int | None) -> str:
    """Say what a plan is for, and tabulate the peak against each open length.

    Args:
        model: The model.
        limit_bytes: Limit to name the largest lengths for; None for none.
    """
    peaks = _peaks(model)
    at = ", ".join(f"{name} {length}" for name, length in model.lengths.items())
    chosen = " (chosen; give others by --shape NAME=N)" if model.are_chosen else ""
    lines = [shorten(printable(f"Planned for {at}{chosen}"), WIDTH_MAX)]
    for each in peaks:
        if each.growth_bytes > 0:
            grown = format_bytes(each.growth_bytes)
            lines.append(f"grows {grown} per {max(each.length, 1)} of {printable(each.name)}")
    for each in peaks:
        lines += ["", *_curve(each)]
    if limit_bytes is not None:
        lines += ["", *_largest(model, peaks, limit_bytes)]
    return "\n".join(lines) + "\n"


def json_of(model: OpenLengths, limit_bytes: int | None) -> list[dict[str, object]]:
    """Convert peaks against each open length to JSON values."""
    found: list[dict[str, object]] = []
    for each in _peaks(model):
        row: dict[str, object] = {
            "name": each.name,
            "length": each.length,
            "growth_bytes": each.growth_bytes,
            "peaks": [{"length": length, "peak_bytes": size} for length, size in each.peaks],
        }
        if limit_bytes is not None:
            row["largest"] = model.largest(each.name, limit_bytes)
        found.append(row)
    return found


def _peaks(model: OpenLengths) -> list[LengthPeaks]:
    is_large = model.step_count >= _MANY_STEPS
    factors = _FEW if is_large else FACTORS
    return [model.peaks(name, factors) for name in [*model.lengths][:_SHOWN]]


def _curve(each: LengthPeaks) -> list[str]:
    """Tabulate the peaks, each with a bar of its size."""
    top = max(size for _, size in each.peaks)
    rows = [
        [str(length), format_bytes(size), "█" * max(1, round(_BAR * size / top))]
        for length, size in each.peaks
    ]
    columns = [Column(printable(each.name), number=True), Column("peak", number=True), Column("")]
    return table(columns, rows, indent=2)


def _largest(model: OpenLengths, peaks: Sequence[LengthPeaks], limit_bytes: int) -> Iterator[str]:
    for each in peaks:
        length = model.largest(each.name, limit_bytes)
        limit = format_bytes(limit_bytes)
        if length:
            yield f"{limit} holds a {printable(each.name)} of {length}, with the others as they are"
        else:
            yield f"{limit} holds no {printable(each.name)}, with the others as they are"
