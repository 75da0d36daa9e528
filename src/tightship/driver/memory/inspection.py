"""Inspection of the files beside a call."""

import enum
import threading
from collections.abc import Callable

from tightship.driver.memory.descriptor import describe
from tightship.driver.memory.file_prober import FileProber, is_prompt
from tightship.driver.memory.trusted import Trusted
from tightship.driver.types.attachment import Attachment

Files = tuple[int, ...]
Facts = tuple[Attachment, ...]


class Later(enum.Enum):
    """Marks a result that a callback will receive."""

    LATER = enum.auto()


def look(
    files: Files, trusted: Trusted, slow: FileProber, then: Callable[[Facts | None], None]
) -> Facts | Later | None:
    """Inspect files; return LATER if `then` gets the result, in another thread.

    The result is None if a file does not answer; the files are then closed as soon as possible.
    """
    first = next((file for file in files if not is_prompt(file)), None)
    if first is None:
        return _facts(files, trusted)
    is_told, beginning = threading.Lock(), threading.Lock()

    def ask() -> None:
        facts = _facts(files, trusted)
        slow.alarms.cancel(alarm)
        if is_told.acquire(blocking=False):
            then(facts)
        else:
            slow.close_all(files)

    def give_up() -> None:
        if is_told.acquire(blocking=False):
            slow.tell()
            with beginning:
                is_unasked = future.cancel()
            if is_unasked:
                slow.close_all(files)
            then(None)

    with beginning:
        try:
            alarm = slow.alarms.set(slow.patience_s, give_up)
        except RuntimeError:  # without a timer the wait could be endless
            slow.tell()
            slow.close_all(files)
            return None
        future = slow.begin(first, ask)
    return Later.LATER


def _facts(files: Files, trusted: Trusted) -> Facts:
    return tuple([describe(file, trusted) for file in files])
