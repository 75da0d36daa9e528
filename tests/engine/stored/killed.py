"""`prepare` killed at each line of what writes its file, over a file that was there before.

    python -m tests.engine.stored.killed FOLDER

Prints for each line, in the order in which they are first reached, what is in the file then: the
`old` model, the `new` one, or something `else`; and how many other files there are.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import tightship
from tests.small_models import dense
from tightship import atomic_file
from tightship.engine.stored import save

WRITERS = {atomic_file.__file__, save.__file__}
Place = tuple[str, int]


def traced(reached: Callable[[Place], None]) -> None:
    """Prepare the new model, telling of each line of the writers that is about to run."""

    def line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            reached(place_of(frame.f_code, frame.f_lineno))
        return line

    def call(frame: FrameType, _event: str, _: object) -> Any:
        return line if frame.f_code.co_filename in WRITERS else None

    sys.settrace(call)
    tightship.prepare(dense(4, hidden=128)[0], TARGET)
    sys.settrace(None)


def place_of(code: CodeType, number: int) -> Place:
    return Path(code.co_filename).name, number


def killed_at(place: Place) -> None:
    """Have a child prepare until it comes to a place."""

    def reached(here: Place) -> None:
        if here == place:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        traced(reached)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def main() -> None:
    """Kill at each line, and print."""
    tightship.prepare(dense(4)[0], TARGET)
    old, places = TARGET.read_bytes(), dict[Place, None]()
    traced(places.setdefault)
    contents = {old: "old", TARGET.read_bytes(): "new"}
    found = []
    for place in places:
        TARGET.write_bytes(old)
        killed_at(place)
        left = contents.get(TARGET.read_bytes(), "else")
        found.append([*place, left, len(list(TARGET.parent.iterdir())) - 1])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    TARGET = Path(sys.argv[1]) / "model.tship"
    main()
