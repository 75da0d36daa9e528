"""Requests, queues, batches and memory of each model over time, in little memory."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

SAMPLES_MAX = 900
"""Samples of a model; with one a second, those of the last quarter of an hour."""
MODELS_MAX = 64
"""Models with a history; further ones, the least used, have none."""
VALUES = 6
"""Numbers of a sample: its time, and five figures."""

Row = list[float]


@dataclass(frozen=True, slots=True)
class Moment:
    """Counts of a model since the start, and what it holds now.

    Attributes:
        request_count: Requests that have ended, well or not.
        success_count, run_count: Requests that ended well, and the runs that answered them.
        pending_count: Requests that wait for a run permit now.
        held_bytes: Weights and programs of the model.
        planned_bytes: Weights and runtime of its plan.
    """

    request_count: int
    success_count: int
    run_count: int
    pending_count: int
    held_bytes: int
    planned_bytes: int


class ModelHistory:
    """Latest samples of models by label. One thread adds them; any may read."""

    def __init__(self) -> None:
        self._rows: dict[str, array[float]] = {}
        self._before: dict[str, Moment] = {}
        self._at_ms = 0

    def add(self, at_ms: int, moments: Mapping[str, Moment]) -> None:
        """Add the samples of a moment; models that are not in it any more are forgotten.

        Args:
            at_ms: Milliseconds since 1970, later than those before.
            moments: Counts by the label of the model.
        """
        used = sorted(moments, key=lambda label: -moments[label].request_count)[:MODELS_MAX]
        rows = {}
        for label in used:
            row = self._rows.get(label, array("d"))
            figures = _figures(self._before.get(label), moments[label], at_ms - self._at_ms)
            # A new array, because readers may hold the one before.
            rows[label] = row[-VALUES * (SAMPLES_MAX - 1) :] + array("d", (at_ms, *figures))
        self._rows, self._before, self._at_ms = rows, dict(moments), at_ms

    def since(self, at_ms: float) -> dict[str, list[Row]]:
        """Return the samples that are later than a time, by the label of the model.

        Returns:
            Of each sample the time in milliseconds since 1970, requests a second, requests that
            wait, requests in a run (0 without a run), and the bytes held and planned.
        """
        return {label: _later(row, at_ms) for label, row in self._rows.items()}


def _figures(before: Moment | None, now: Moment, elapsed_ms: int) -> tuple[float, ...]:
    """Return the figures of a sample; those of a first one know no rates."""
    rate = batch = 0.0
    if before is not None and elapsed_ms > 0:
        rate = max(0, now.request_count - before.request_count) * 1000 / elapsed_ms
        runs = now.run_count - before.run_count
        batch = (now.success_count - before.success_count) / runs if runs > 0 else 0.0
    return rate, now.pending_count, batch, now.held_bytes, now.planned_bytes


def _later(row: "array[float]", at_ms: float) -> list[Row]:
    found = []
    for start in range(len(row) - VALUES, -1, -VALUES):
        if row[start] <= at_ms:
            break
        found.append([round(each, 2) for each in row[start : start + VALUES]])
    return found[::-1]
