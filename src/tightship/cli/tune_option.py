"""`--tune`: where choices are kept, and a line that says how far measuring them has come."""

import argparse
from pathlib import Path

from tightship.cli.arguments import max_memory
from tightship.cli.progress import Progress
from tightship.engine.prepare import Settings
from tightship.engine.program_cache import Bounds
from tightship.engine.stored.container import holds_prepared
from tightship.loading.opening import measure
from tightship.prepared_cache import user_folder


def tuned_file() -> Path:
    """Where choices are kept if no file is named."""
    return user_folder() / "tuned.json"


def tune(options: argparse.Namespace, model: str) -> str | None:
    """Measure a model unless its choice is stored; the file of the choice, if one is asked for."""
    file: str | None = options.tune
    if file is None or holds_prepared(model):  # which `load` and `plan` refuse to tune
        return file
    if not file:
        file = str(tuned_file())
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    settings = Settings(dict(options.shape), options.threads or 1, options.without)
    bounds = Bounds(limit_bytes=max_memory(options), dynamic_bytes=options.dynamic_memory)
    with Progress("measuring layouts") as progress:
        measure(model, settings, file, bounds, progress)
    return file
