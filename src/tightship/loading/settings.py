"""Collects the settings that a caller gives for a model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tightship.engine.library import check_workers
from tightship.errors import InputError
from tightship.quantity import parse_bytes

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import Settings

Workers = tuple[int | None, str | int | None]
"""Steps that run at once, and most that the arena may take beyond that for one worker."""


def settings_of(
    shapes: Mapping[str, Sequence[int] | int] | None,
    threads: int | None,
    without: Collection[str],
    workers: Workers,
    limit_bytes: int | None,
    beside: Mapping[str, object],
) -> "Settings":
    """Collect the settings of a model that is not prepared.

    Args:
        shapes: Shapes by input, or lengths by dimension.
        threads: Threads of each kernel; None for one.
        without: Names of passes to leave out.
        workers: Steps that run at once, and their memory; None where the caller gives none.
        limit_bytes: Most that the plan for several workers is to take.
        beside: As for `with_workers`.

    Raises:
        InputError: As from `with_workers`.
    """
    from tightship.engine.compile.compile_graph import Settings  # not for prepared models

    return with_workers(
        Settings(shapes, 1 if threads is None else threads, without), workers, limit_bytes, beside
    )


def with_workers(
    settings: "Settings",
    workers: Workers,
    limit_bytes: int | None,
    beside: Mapping[str, object],
) -> "Settings":
    """Add the workers that a model is planned for.

    Args:
        settings: Settings without them.
        workers: As for `settings_of`.
        limit_bytes: Most that the plan is to take, if a plan for one worker takes no more.
        beside: Arguments, by name, that do not go with several workers; None for one not given.

    Raises:
        InputError: The workers do not fit the threads, or an argument does not fit them.
    """
    count, memory = workers
    if count is None or count == 1:
        if memory is not None:
            raise InputError("`workers_memory` is for several workers; give `workers` too.")
        return settings
    check_workers(count, settings.threads)
    for name, value in beside.items():
        if value is not None:
            raise InputError(
                f"`{name}` does not go with `workers={count}`, as it is for steps that run one "
                "after another; leave one of them out."
            )
    added = None if memory is None else parse_bytes(memory, "workers_memory", least=0)
    return replace(settings, workers=count, workers_memory=added, limit_bytes=limit_bytes)
