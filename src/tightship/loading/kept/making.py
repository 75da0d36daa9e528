"""Has programs made and kept by a process of its own, which takes what that leaves behind along.

Modules that read and lower a model, and what they leave in the heap, would take memory for as long
as the process runs that happened to be the first; later ones do without.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings
from tightship.loading.reading_process import ReadingProcess

if TYPE_CHECKING:
    from tightship.engine.state.step_choices import StepChoices

NO_BOUNDS = Bounds()


def keep_own_apart(model: str | os.PathLike[str], settings: Settings) -> None:
    """Have the program of loading kept; if that fails, the caller makes it and says why."""
    _call(_keep_own, model, settings)


def keep_steps_apart(
    model: str | os.PathLike[str],
    settings: Settings,
    choices: "StepChoices",
    name: str,
    counts: Sequence[int],
) -> None:
    """Have programs of sessions kept, of so many tokens or sessions; nothing is said if that fails.

    Args:
        model: Path of a file whose program of loading is kept.
        settings: Settings that programs depend on.
        choices: Choices of the sessions.
        name: What is counted, as `StepPrograms.keep` names it.
        counts: Numbers of tokens or sessions.
    """
    _call(_keep_steps, model, settings, choices, name, tuple(counts))


def _call(
    function: Callable[..., None],
    model: str | os.PathLike[str],
    settings: Settings,
    *arguments: object,
) -> None:
    sent = replace(settings, without=tuple(settings.without), go_on=None)
    with ReadingProcess() as process, suppress(Exception):
        process.call(function, os.fspath(model), sent, *arguments)


def _keep_own(model: str, settings: Settings) -> None:
    """Compile the program of loading, and keep it with the matrices that are taken apart."""
    from tightship.loading.kept.model import keep_in
    from tightship.loading.kept.programs import KeptPrograms
    from tightship.loading.unprepared import compile_anew

    kept = KeptPrograms.of(model, settings)
    if kept is not None:
        compile_anew(model, settings, NO_BOUNDS, None, partial(keep_in, kept, NO_BOUNDS))
        kept.own()


def _keep_steps(
    model: str, settings: Settings, choices: "StepChoices", name: str, counts: Sequence[int]
) -> None:
    from tightship.loading.kept.model import load_kept

    _, loaded = load_kept(model, settings, NO_BOUNDS, None, apart=False)
    if loaded is not None:
        with loaded:
            programs = loaded._opened().of(choices)
            for count in counts:
                programs.keep(name, count)
