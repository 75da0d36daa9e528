"""Implements `tightship prepare`: writes a model to a file that processes map and share."""

import argparse
from pathlib import Path

from tightship.cli.output import show, show_json
from tightship.cli.progress import Progress
from tightship.errors import InputError
from tightship.loading.preparing import prepare
from tightship.quantity import format_bytes

Shape = tuple[int, ...]


def run(options: argparse.Namespace) -> int:
    """Write a prepared model; print its size on disk and in memory."""
    output = Path(options.output)
    if options.cache is not None and not options.context:
        raise InputError("`--cache` is for sessions; give `--context`, the tokens of one.")
    with Progress("packing weights") as progress:
        plan = prepare(
            options.file, output, shapes=shape_sets(options.shape), threads=options.threads or 1,
            workers=options.workers or 1, workers_memory=options.workers_memory,
            without=options.without, progress=progress, context=options.context or (),
            cache=options.cache, activations=options.activations,
        )  # fmt: skip
    size = output.stat().st_size
    if options.json:
        show_json({"file_bytes": size, "weights_bytes": plan.weights_bytes,
                   "peak_bytes": plan.peak_bytes})  # fmt: skip
    else:
        show(
            f"{output}: {format_bytes(size)}, including {format_bytes(plan.weights_bytes)} of "
            "weights that processes share; each process takes "
            f"{format_bytes(plan.peak_bytes - plan.weights_bytes)} more\n"
        )
    return 0


def shape_sets(given: list[tuple[str, Shape]]) -> list[dict[str, Shape]]:
    """Distribute shapes over programs: the first shape of a name belongs to the first program.

    A name that is given once has that shape in all programs.

    Raises:
        InputError: Two names are given more than once, but not equally often.
    """
    by_name: dict[str, list[Shape]] = {}
    for name, shape in given:
        by_name.setdefault(name, []).append(shape)
    count = max(map(len, by_name.values()), default=1)
    for name, shapes in by_name.items():
        if len(shapes) not in (1, count):
            raise InputError(
                f"`--shape {name}=...` is given {len(shapes)} times, another input {count} times; "
                "give an input once for all programs, or once for each."
            )
    return [
        {name: shapes[index if len(shapes) > 1 else 0] for name, shapes in by_name.items()}
        for index in range(count)
    ]
