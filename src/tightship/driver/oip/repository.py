"""Repository of the models that are served: their sources, states and request metrics."""

import enum
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike

from tightship._core import RequestMetrics
from tightship.driver.memory.available import available_bytes
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.request_counts import Counts, counts_of
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import GraphError, InputError, OutOfMemoryError, TightshipError
from tightship.loading import load, plan
from tightship.loading.first_shapes import first_shapes
from tightship.model import Model

VERSION = "1"
"""Version of every model, because files have none."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Source of a model, and arguments of `tightship.load`."""

    path: str | PathLike[str]
    shapes: Mapping[str, Sequence[int]] | None = None
    threads: int | None = None
    max_memory: int | str | None = None
    dynamic_memory: int | str | None = None


class State(enum.Enum):
    """States of a model in the repository."""

    LOADING = enum.auto()
    READY = enum.auto()
    UNLOADING = enum.auto()
    UNAVAILABLE = enum.auto()


@dataclass(slots=True, eq=False)
class _Entry:
    state: State = State.UNAVAILABLE
    reason: str = ""
    model: Model | None = None
    is_constant_time: bool = False
    metrics: RequestMetrics = field(default_factory=RequestMetrics)
    native_request_metrics: RequestMetrics = field(default_factory=RequestMetrics)
    changing: threading.Lock = field(default_factory=threading.Lock)


Sources = Callable[[], Mapping[str, ModelSource]]
"""Returns the current models by name: a folder may gain and lose some."""


class Repository:
    """Models by name, for all endpoints of a driver. May be used from several threads.

    Attributes:
        arenas: Arenas that all runs share.
        changed: Notified when the state of a model has changed.
        on_withdrawn: Callbacks for a model that is no longer handed out, before it is closed.
    """

    def __init__(self, find: Sources) -> None:
        """Find the models, without loading them."""
        self._find = find
        self.arenas = ArenaGroup()
        self._entries = {name: _Entry() for name in find()}
        self._unnamed = RequestMetrics()
        self._holders: Counter[Model] = Counter()
        self._withdrawn: set[Model] = set()
        self._uses: Counter[Model] = Counter()
        self._holding = threading.Lock()
        self.changed = threading.Condition()
        self._unused = threading.Condition(self._holding)
        self.on_withdrawn: list[Callable[[Model], None]] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all models, in order."""
        return tuple(self._entries)

    def load(self, name: str) -> None:
        """Load or reload a model; the old one serves until the new one is ready.

        If memory is too small for both, the old one is closed first.

        Raises:
            OipError: The model does not exist or cannot be loaded; the old one stays unless it was
                closed.
        """
        source = self._polled().get(name)
        if source is None:
            raise OipError(f"failed to load '{name}', failed to poll from model repository")
        entry = self._entries.setdefault(name, _Entry())
        with entry.changing:
            try:
                model = self._loaded(entry, source)
                _ = (
                    model.known_output_shapes
                )  # may read the file, so do it before any request waits
            except (TightshipError, OSError) as error:
                if entry.model is None:
                    entry.state, entry.reason = State.UNAVAILABLE, str(error)
                    self._notify()
                raise OipError(f"failed to load '{name}': {error}") from error
            entry.reason = ""
            entry.is_constant_time = not model.takes_other_shapes and model.plan.is_exact
            self._withdraw(entry, State.READY, model)

    def _loaded(self, entry: _Entry, source: ModelSource) -> Model:
        """Load a model; lengths that neither its file nor its source gives are chosen here.

        Raises:
            InputError: No choice fits the model.
        """
        try:
            return self._loaded_with(entry, source)
        except InputError as error:
            reason = error
        failed: TightshipError | None = None
        for shapes in first_shapes(source.path, source.shapes or {}):
            try:
                return self._loaded_with(entry, replace(source, shapes=shapes))
            except (GraphError, InputError) as error:
                failed = failed or error
        if failed is None:
            raise reason
        raise InputError(f"{reason} Lengths that were tried do not fit: {failed}") from failed

    def _loaded_with(self, entry: _Entry, source: ModelSource) -> Model:
        """Load a model beside the old one, or after closing that if memory is too small."""
        anew = partial(
            load,
            source.path,
            shapes=source.shapes,
            threads=source.threads,
            max_memory=source.max_memory,
            dynamic_memory=source.dynamic_memory,
            arena_pool=self.arenas,
        )
        if entry.model is not None:
            needed = plan(source.path, shapes=source.shapes, threads=source.threads).peak_bytes
            if needed <= available_bytes():
                with suppress(OutOfMemoryError):
                    return anew()
        self._withdraw(entry, State.LOADING)
        return anew()

    def unload(self, name: str) -> None:
        """Close a model once its runs have ended and it is not held.

        Harmless when repeated.

        Raises:
            OipError: The model does not exist.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise OipError(f"failed to unload '{name}', no such model in the repository")
        with entry.changing:
            self._withdraw(entry, State.UNLOADING)
            entry.state, entry.reason = State.UNAVAILABLE, "unloaded"
            self._notify()

    def close(self) -> None:
        """Unload every model; nothing may be running."""
        for name in self.names:
            self.unload(name)
        self.arenas.close()

    def hold(self, name: str) -> Model:
        """Hold a model, as `Named.hold`."""
        with self._holding:
            model = self.model(name)[0]
            self._holders[model] += 1
            return model

    def hold_all(self) -> Mapping[str, Model]:
        """Hold all models, as `Named.hold_all`."""
        with self._holding:
            known = {name: entry.model for name, entry in tuple(self._entries.items())}
            found = {name: model for name, model in known.items() if model is not None}
            self._holders.update(found.values())
            return found

    def release(self, model: Model) -> None:
        """Release a model, as `Named.release`."""
        with self._holding:
            self._holders[model] -= 1
            is_over = model in self._withdrawn and not self._holders[model]
            if not self._holders[model]:
                del self._holders[model]
            if is_over:
                self._withdrawn.remove(model)
        if is_over:
            model.close()

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def _withdraw(self, entry: _Entry, state: State, successor: Model | None = None) -> None:
        """Stop handing out a model and wait for its requests.

        It is closed then, or when its last holder releases it.
        """
        with self._holding:
            model, entry.model, entry.state = entry.model, successor, state
        self._notify()
        if model is None:
            return
        for forget in self.on_withdrawn:
            forget(model)
        with self._holding:
            while self._uses[model]:
                self._unused.wait()
            is_held = self._holders[model] > 0
            if is_held:
                self._withdrawn.add(model)
        if not is_held:
            model.close()

    @contextmanager
    def used(self, name: str, version: str | None = None) -> Iterator[tuple[Model, RequestMetrics]]:
        """Return `model` and keep it open within a block, even if it is reloaded.

        Raises:
            OipError: As from `model`.
        """
        with self._holding:
            model, metrics = self.model(name, version)
            self._uses[model] += 1
        try:
            yield model, metrics
        finally:
            with self._holding:
                self._uses[model] -= 1
                if not self._uses[model]:
                    del self._uses[model]
                    self._unused.notify_all()

    def is_constant_time(self, name: str) -> bool:
        """Whether runs of a model take equally long, whatever the contents of its inputs.

        This holds if inputs have one shape and no step runs graphs or allocates.
        """
        return self._entries[name].is_constant_time

    def is_ready(self, name: str, version: str | None = None) -> bool:
        """Whether the model exists and can be run."""
        try:
            return self._entry(name, version).state is State.READY
        except OipError:
            return False

    @property
    def ready_names(self) -> tuple[str, ...]:
        """Names of the models that can be run, in order."""
        entries = tuple(self._entries.items())
        return tuple(name for name, entry in entries if entry.state is State.READY)

    def model(self, name: str, version: str | None = None) -> tuple[Model, RequestMetrics]:
        """Return a model that is ready, and its request metrics.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        entry = self._entry(name, version)
        model = entry.model
        if model is None:
            raise OipError(f"Request for unknown model: '{name}' is not ready", Code.UNAVAILABLE)
        return model, entry.metrics

    def has(self, model: Model) -> bool:
        """Whether a model is the current one of its name."""
        return any(entry.model is model for entry in tuple(self._entries.values()))

    def counts(self, name: str) -> Counts:
        """Return the counts of a model's requests since the start, loaded or not."""
        return counts_of(self._entries[name].metrics)

    def metrics(self, name: str | None) -> RequestMetrics:
        """Return the metrics of native runs, as `Named.metrics`."""
        return self._unnamed if name is None else self._entries[name].native_request_metrics

    def native_counts(self, name: str | None) -> Counts:
        """Return the counts of native clients' runs."""
        return counts_of(self.metrics(name))

    def index(self, *, only_ready: bool = False) -> list[dict[str, str]]:
        """Return every model with its state, and why it is not ready.

        Raises:
            OipError: Two models would have one name.
        """
        for name in self._polled():
            self._entries.setdefault(name, _Entry())
        return [
            {"name": name, "version": VERSION, "state": entry.state.name}
            | ({"reason": entry.reason} if entry.reason else {})
            for name, entry in tuple(self._entries.items())
            if entry.state is State.READY or not only_ready
        ]

    def _polled(self) -> Mapping[str, ModelSource]:
        try:
            return self._find()
        except InputError as error:
            raise OipError(f"failed to poll from model repository: {error}") from error

    def _entry(self, name: str, version: str | None) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise OipError(f"Request for unknown model: '{name}' is not found", Code.NOT_FOUND)
        if version not in {None, "", VERSION}:
            raise OipError(
                f"Request for unknown model: '{name}' version {version} is not found",
                Code.NOT_FOUND,
            )
        return entry
