"""Implements `--tune`: measures layouts, with a progress line, and keeps the choices in a file."""

import argparse
from pathlib import Path

from tightship.cli.argument_types import max_memory
from tightship.cli.progress import Progress
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.stored.container import holds_prepared
from tightship.errors import InputError
from tightship.loading.activations import chosen_passes
from tightship.loading.opening import measure
from tightship.prepared_cache import user_folder


def tuned_file() -> Path:
    """Return the default file of choices."""
    return user_folder() / "tuned.json"


def tune(options: argparse.Namespace, model: str) -> str | None:
    """Measure a model unless its choice is stored; return the file of choices, if any."""
    file: str | None = options.tune
    if file is None or holds_prepared(model):  # `load` and `plan` raise the error for these
        return file
    if (options.workers or 1) > 1:
        raise InputError(
            "`--tune` measures steps that run one after another; leave it out, or `--workers`."
        )
    if not file:
        file = str(tuned_file())
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    without = chosen_passes(model, options.without, None)
    settings = Settings(dict(options.shape), options.threads or 1, without)
    bounds = Bounds(limit_bytes=max_memory(options), dynamic_bytes=options.dynamic_memory)
    with Progress("measuring layouts") as progress:
        measure(model, settings, file, bounds, progress)
    return file
