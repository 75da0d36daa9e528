"""Models that a driver was started with, which its clients know by name."""

from collections.abc import Mapping
from typing import Protocol

from tightship._core import Tally
from tightship.engine.arenas.joint_arenas import JointArenas
from tightship.model import Model


class Named(Protocol):
    """Models by name. May be used from several threads.

    A model that is held stays open, also when its name comes to stand for another, or for none.
    """

    @property
    def arenas(self) -> JointArenas:
        """What runs of all models take in turns, those of clients too."""
        ...

    def tally(self, name: str | None) -> Tally:
        """Of native clients' runs of a model; None for models of their own, counted as one."""
        ...

    def hold(self, name: str) -> Model:
        """A model, open until it was let go as often as it was held.

        Raises:
            DriverError: There is none of that name that can be run now.
        """
        ...

    def hold_all(self) -> Mapping[str, Model]:
        """`hold` every model that can be run now."""
        ...

    def let_go(self, model: Model) -> None:
        """Whoever held a model needs it no more."""
        ...
