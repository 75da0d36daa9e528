"""Entry of the repository: the versions of a model, loaded or not."""

import enum
import threading
from dataclasses import dataclass, field

from tightship._core import RequestMetrics
from tightship.driver.oip.model_source import Stamp
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.request_counts import JoinedCount
from tightship.driver.oip.served_model import ServedModel

LATEST = frozenset({None, "", "-1"})
"""Texts by which clients ask for the latest version."""


class State(enum.Enum):
    """States of a version in the repository."""

    LOADING = enum.auto()
    READY = enum.auto()
    UNLOADING = enum.auto()
    UNAVAILABLE = enum.auto()


@dataclass(slots=True, eq=False)
class VersionState:
    """State of a version, loaded or not.

    Attributes:
        reason: Why it is not ready.
        served: What requests use; None while there is nothing.
        metrics: Metrics of requests of the inference protocol.
        native_metrics: Metrics of runs of native clients.
        joined: Requests that were part of another one's run.
    """

    state: State = State.UNAVAILABLE
    reason: str = ""
    served: ServedModel | None = None
    metrics: RequestMetrics = field(default_factory=RequestMetrics)
    native_metrics: RequestMetrics = field(default_factory=RequestMetrics)
    joined: JoinedCount = field(default_factory=JoinedCount)

    def fail(self, reason: str) -> None:
        """Note why there is nothing to serve, unless an earlier load is still served."""
        if self.served is None:
            self.state, self.reason = State.UNAVAILABLE, reason


@dataclass(slots=True, eq=False)
class ModelEntry:
    """Versions of a model by name.

    Attributes:
        states: State of every version that was loaded, or should have been.
        order: Versions that are served, in ascending order.
        reason: Why the last load did not even come to a version.
        found: Files at the last load.
        changing: Held while versions are loaded or unloaded.
    """

    name: str
    states: dict[str, VersionState] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    reason: str = ""
    found: Stamp = ()
    changing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def versions(self) -> tuple[str, ...]:
        """All versions with a state, in ascending order."""
        return tuple(sorted(self.states, key=int))

    @property
    def latest(self) -> ServedModel | None:
        """The greatest version that is served."""
        return self.states[self.order[-1]].served if self.order else None

    def served(self, version: str | None) -> ServedModel:
        """Return a version that is ready, as `Repository.served`.

        Raises:
            OipError: It does not exist, or is not ready.
        """
        found = self.latest
        if version not in LATEST:
            state = self.states.get(str(version))
            if state is None:
                raise OipError(
                    f"Request for unknown model: '{self.name}' version {version} is not found",
                    Code.NOT_FOUND,
                )
            found = state.served
        if found is None:
            which = "" if version in LATEST else f" version {version}"
            raise OipError(
                f"Request for unknown model: '{self.name}'{which} is not ready", Code.UNAVAILABLE
            )
        return found

    def state(self, version: str | None) -> VersionState:
        """Return the state of a version; of the latest by default, even if none is served."""
        known = self.order or self.versions
        chosen = known[-1] if version is None and known else version or ""
        return self.states.get(chosen) or VersionState()

    def fail(self, reason: str) -> None:
        """Note why the model could not be loaded, unless an earlier load is still served."""
        self.reason = reason
        for state in self.states.values():
            state.fail(reason)

    def rows(self) -> list[dict[str, str]]:
        """Return a row of the index for each version; one without a version if none is known."""
        said = [(each, self.states[each]) for each in self.versions]
        said = said or [("", VersionState(reason=self.reason))]
        return [
            {"name": self.name, "version": version, "state": each.state.name}
            | ({"reason": each.reason} if each.reason else {})
            for version, each in said
        ]
