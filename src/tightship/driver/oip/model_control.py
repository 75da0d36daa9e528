"""Control of the repository: which models are loaded at the start, and what changes that later."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.repository import Repository
from tightship.driver.printable import printable

_LOG = logging.getLogger(__name__)
ALL = "*"


@dataclass(frozen=True, slots=True)
class ModelControl:
    """Rules of when models are loaded and unloaded.

    Attributes:
        at_start: Names of the models to load at the start, `ALL` for all of them.
        takes_calls: Whether clients may load and unload models.
        poll_s: Seconds between looks for changed files; None for no looking.
    """

    at_start: tuple[str, ...] = (ALL,)
    takes_calls: bool = True
    poll_s: float | None = None

    def chosen(self, names: Sequence[str]) -> Sequence[str]:
        """Return the models to load at the start, of those present and those asked for."""
        return tuple(names) if ALL in self.at_start else self.at_start


FREE_CONTROL = ModelControl()
"""All models are loaded at the start, and clients may load and unload them."""


class Poller:
    """Thread that loads models whose files have changed, and unloads those that are gone."""

    def __init__(self, repository: Repository, period_s: float) -> None:
        """Prepare to look every `period_s` seconds."""
        self._repository, self._period_s = repository, period_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tightship-poll")

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after a load under way."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        said = ""
        while not self._ended.wait(self._period_s):
            try:
                failures = self._repository.poll()
            except OipError as error:
                if str(error) != said:  # once, for as long as it lasts
                    said = str(error)
                    _LOG.error("%s", printable(said))
                continue
            said = ""
            for failure in failures:
                _LOG.error("%s", printable(str(failure)))
