"""Time from loading a prepared model to its first result, by part.

    python -m benchmarks.load_parts MODEL.tship FEEDS

Prints JSON: milliseconds of each part, in a process that has imported the package before.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from tightship.engine.cache import program_cache
from tightship.engine.stored.model import StoredModel
from tightship.loading import load, restoring

P = ParamSpec("P")
R = TypeVar("R")

taken_ms: dict[str, float] = {}


def timed(part: str, call: Callable[P, R]) -> Callable[P, R]:
    """The call, its time noted as that of a part."""

    def noted(*args: P.args, **named: P.kwargs) -> R:
        start = time.perf_counter()
        result = call(*args, **named)
        taken_ms[part] = taken_ms.get(part, 0.0) + 1e3 * (time.perf_counter() - start)
        return result

    return noted


def main(model: str, feeds: str) -> None:
    """Load, run twice, print."""
    given = dict(np.load(feeds))
    for place, name, part in (
        (restoring, "open_library", "library"),
        (restoring, "StoredModel", "file"),
        (StoredModel, "prepared", "kernels chosen"),
        (program_cache, "build", "kernels generated"),
    ):
        setattr(place, name, timed(part, getattr(place, name)))
    loaded = timed("load", load)(model)
    timed("first run", loaded.run)(given)
    timed("another run", loaded.run)(given)
    taken_ms["rest of loading"] = 2 * taken_ms["load"] - sum(
        time for part, time in taken_ms.items() if not part.endswith("run")
    )
    print(json.dumps({part: round(time, 2) for part, time in taken_ms.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
