"""Implements `--split` of `tightship plan`: stages of a model for nodes of given memory."""

import argparse

from tightship.cli.output import show, show_json
from tightship.cluster.splitting import Split, Stage, split
from tightship.errors import InputError
from tightship.quantity import format_bytes
from tightship.view.table import Column, table
from tightship.view.text import printable

TITLES = ("budget", "peak", "weights", "arena", "in and out", "runtime", "received")


def run_split(options: argparse.Namespace) -> int:
    """Cut a model into stages within the budgets, and print them.

    Raises:
        CapacityError: There are no such stages.
        InputError: An option is given that a split does not take.
    """
    for given, name in ((options.max_memory, "max-memory"), (options.output, "output"),
                        (options.dynamic_memory, "dynamic-memory"),
                        (options.activations, "activations"), (options.without, "without"),
                        (options.tune is not None, "tune"), (options.capacity, "capacity"),
                        (options.minimize, "minimize"), (options.order, "order"),
                        (options.cache, "cache"), (options.workers, "workers"),
                        (options.workers_memory is not None, "workers-memory")):  # fmt: skip
        if given:
            raise InputError(f"`--{name}` does not go with `--split`; leave one of them out.")
    found = split(
        options.file,
        options.split,
        shapes=dict(options.shape),
        threads=options.threads or 1,
    )
    if options.json:
        show_json(_json(found))
    else:
        show(_text(found))
    return 0


def _json(found: Split) -> dict[str, object]:
    return {
        "model": found.model,
        "crossing_bytes": found.crossing_bytes,
        "stages": [
            {
                "start_step": stage.start_step,
                "stop_step": stage.stop_step,
                "budget": stage.budget,
                "budget_bytes": stage.budget_bytes,
                "received_bytes": stage.received_bytes,
                "peak_bytes": stage.plan.peak_bytes,
                "weights_bytes": stage.plan.weights_bytes,
                "arena_bytes": stage.plan.arena_bytes,
                "io_bytes": stage.plan.io_bytes,
                "runtime_bytes": stage.plan.runtime_bytes,
            }
            for stage in found.stages
        ],
    }


def _text(found: Split) -> str:
    columns = [Column("stage"), Column("steps"), *(Column(title, number=True) for title in TITLES)]
    rows = [
        (
            str(number),
            f"{stage.start_step} to {stage.stop_step - 1}",
            *map(format_bytes, _amounts(stage)),
        )
        for number, stage in enumerate(found.stages, start=1)
    ]
    lines = [
        f"{printable(found.model)}: {len(found.stages)} stages, "
        f"{format_bytes(found.crossing_bytes)} across cuts",
        "",
        *table(columns, rows, indent=2),
    ]
    return "\n".join(lines) + "\n"


def _amounts(stage: Stage) -> tuple[int, ...]:
    """Return bytes in the order of `TITLES`."""
    plan = stage.plan
    return (
        stage.budget_bytes, plan.peak_bytes, plan.weights_bytes, plan.arena_bytes, plan.io_bytes,
        plan.runtime_bytes, stage.received_bytes,
    )  # fmt: skip
