"""Models that a driver was started with, known to clients by name."""

from collections.abc import Mapping
from typing import Protocol

from tightship._core import RequestMetrics
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.model import Model


class Named(Protocol):
    """Models by name. May be used from several threads.

    A held model stays open even if its name is given to another model or removed.
    """

    @property
    def arenas(self) -> ArenaGroup:
        """Arenas that runs of all models share, clients' own models included."""
        ...

    def metrics(self, name: str | None) -> RequestMetrics:
        """Return the request metrics of a model; None stands for all models of clients."""
        ...

    def hold(self, name: str) -> Model:
        """Return a model that stays open until `release` was called as often as `hold`.

        Raises:
            DriverError: No model of that name can be run now.
        """
        ...

    def hold_all(self) -> Mapping[str, Model]:
        """Hold every model that can be run now."""
        ...

    def release(self, model: Model) -> None:
        """Release a model obtained from `hold`."""
        ...
