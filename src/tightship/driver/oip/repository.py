"""Repository of the models that are served: their versions, states and request metrics."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from tightship._core import RequestMetrics
from tightship.available import available_bytes
from tightship.driver.oip.model_entry import ModelEntry, State, VersionState
from tightship.driver.oip.model_loading import load_checked, needed_bytes, planned, with_lengths
from tightship.driver.oip.model_source import ModelSource, Source, Sources
from tightship.driver.oip.model_uses import ModelUses
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.request_counts import Counts, counts_of
from tightship.driver.oip.served_model import ServedModel
from tightship.driver.printable import printable
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import InputError, OutOfMemoryError, TightshipError
from tightship.model import Model

_LOG = logging.getLogger(__name__)


class Repository:
    """Models by name, for all endpoints of a driver. May be used from several threads.

    Attributes:
        arenas: Arenas that all runs share.
        changed: Notified when the state of a model has changed.
        on_withdrawn: Callbacks called with a model before it is closed, once a newer version has
            replaced it or its name is unloaded.
    """

    def __init__(self, find: Sources) -> None:
        """Find the models, without loading them."""
        self._find = find
        self.arenas = ArenaGroup()
        self._entries = {name: ModelEntry(name) for name in find()}
        self._unnamed = RequestMetrics()
        self._holders: Counter[Model] = Counter()
        self._withdrawn: set[Model] = set()
        self._holding = threading.Lock()
        self.changed = threading.Condition()
        self._uses = ModelUses(self._holding)
        self.on_withdrawn: list[Callable[[Model], None]] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all models, in order."""
        return tuple(self._entries)

    def versions(self, name: str) -> tuple[str, ...]:
        """Return all versions of a model that were loaded, or should have been."""
        return self._named(name).versions

    def served_versions(self, name: str) -> tuple[str, ...]:
        """Return the versions of a model that are served, in ascending order."""
        return self._named(name).order

    def load(self, name: str, config: str | None = None) -> None:
        """Load or reload a model; what was served before serves until all versions are ready.

        A version of which neither files nor configuration have changed is not loaded again. If
        memory is too small for the old and the new model of a version, the old one is closed first.

        Args:
            name: Name of the model.
            config: Configuration in JSON to use instead of that of its files.

        Raises:
            OipError: The model does not exist, or a version cannot be loaded. Then everything
                stays as it was; if nothing was served, the other versions are.
        """
        source = self._polled().get(name)
        if source is None:
            raise OipError(f"failed to load '{name}', failed to poll from model repository")
        entry = self._entries.setdefault(name, ModelEntry(name))
        with entry.changing:
            try:
                entry.found = source.found()
                wanted = source.versions(config)
            except (TightshipError, OSError) as error:
                entry.fail(str(error))
                self._notify()
                raise OipError(f"failed to load '{name}': {error}") from error
            entry.reason = ""
            _warn(name, wanted)
            self._replace(entry, wanted)

    def _replace(self, entry: ModelEntry, wanted: Mapping[str, ModelSource]) -> None:
        """Load the versions that are wanted, then serve them and withdraw all others."""
        made: dict[str, ServedModel] = {}
        failures: dict[str, Exception] = {}
        for version, source in wanted.items():
            state = entry.states.setdefault(version, VersionState())
            if state.served is not None and source.loads_like(state.served.source):
                made[version] = replace(state.served, source=source)
                continue
            try:
                model = with_lengths(planned(source), partial(self._made, entry, state))
            except (TightshipError, OSError) as error:
                state.fail(str(error))
                failures[version] = error
                continue
            made[version] = ServedModel.of(
                entry.name, version, model, source, state.metrics, state.joined
            )
        if failures and entry.order:
            _discard(entry, made)
        else:
            self._publish(entry, made)
        self._notify()
        for version, failure in failures.items():
            which = f"version {version}: " if len(wanted) > 1 else ""
            raise OipError(f"failed to load '{entry.name}': {which}{failure}") from failure

    def _made(self, entry: ModelEntry, state: VersionState, source: ModelSource) -> Model:
        """Load a model beside the old one, or after closing that if memory is too small."""
        if state.served is not None:
            if needed_bytes(source) <= available_bytes():
                with suppress(OutOfMemoryError):
                    return load_checked(source, self.arenas)
            self._withdraw(entry, state)
        return load_checked(source, self.arenas)

    def _withdraw(self, entry: ModelEntry, state: VersionState) -> None:
        """Stop handing out a version that is to be loaded again, and close it."""
        served = state.served
        assert served is not None, entry.name
        with self._holding:
            entry.order = tuple(each for each in entry.order if each != served.version)
            state.served, state.state = None, State.LOADING
        self._notify()
        self._close(served.model)

    def _publish(self, entry: ModelEntry, made: Mapping[str, ServedModel]) -> None:
        """Serve models as all versions of a name; return when the former ones are closed."""
        with self._holding:
            latest, states = entry.latest, entry.states
            former = [served for each in entry.order if (served := states[each].served) is not None]
            for version, served in made.items():
                state = states[version]
                state.served, state.state, state.reason = served, State.READY, ""
            gone = [states[each] for each in entry.order if each not in made]
            entry.order = tuple(sorted(made, key=int))
            for state in gone:
                state.served, state.state = None, State.UNLOADING
        self._notify()
        if latest is not None:
            self._forget(latest.model)
        kept = {served.model for served in made.values()}
        for served in former:
            if served.model not in kept:
                self._close(served.model)
        for state in gone:
            state.fail("unloaded")

    def unload(self, name: str) -> None:
        """Close all versions of a model once their runs have ended and they are not held.

        Harmless when repeated.

        Raises:
            OipError: The model does not exist.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise OipError(f"failed to unload '{name}', no such model in the repository")
        with entry.changing:
            self._publish(entry, {})
            entry.found = ()
            entry.fail("unloaded")
            self._notify()

    def close(self) -> None:
        """Unload every model; nothing may be running."""
        for name in self.names:
            self.unload(name)
        self.arenas.close()

    def poll(self) -> list[OipError]:
        """Load models that are new or have changed, and unload those that are gone.

        Returns:
            Why models could not be loaded; each is tried again once its files change.

        Raises:
            OipError: The models cannot be listed.
        """
        failures = []
        sources = self._polled()
        for name, entry in tuple(self._entries.items()):
            if name not in sources and entry.order:
                self.unload(name)
        for name, source in sources.items():
            entry = self._entries.setdefault(name, ModelEntry(name))
            try:
                if entry.found != source.found():
                    self.load(name)
            except OSError:
                continue  # the folder goes just now; the next poll tells
            except OipError as error:
                failures.append(error)
        return failures

    def hold(self, name: str) -> Model:
        """Hold the latest version of a model, as `Named.hold`."""
        with self._holding:
            model = self.served(name).model
            self._holders[model] += 1
            return model

    def hold_all(self) -> Mapping[str, Model]:
        """Hold all models, as `Named.hold_all`, by `label`."""
        with self._holding:
            found = {
                self.label(entry.name, version): served.model
                for entry in tuple(self._entries.values())
                for version in entry.order
                if (served := entry.states[version].served) is not None
            }
            self._holders.update(found.values())
            return found

    def label(self, name: str, version: str) -> str:
        """Return a model's name, with its version if it has others too."""
        return f"{name}/{version}" if len(self._named(name).states) > 1 else name

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

    def _forget(self, model: Model) -> None:
        for forget in self.on_withdrawn:
            forget(model)

    def _close(self, model: Model) -> None:
        """Close a model that new requests do not get, once its last holder has released it."""
        self._forget(model)
        with self._holding:
            self._uses.wait_until_unused(model)
            is_held = self._holders[model] > 0
            if is_held:
                self._withdrawn.add(model)
        if not is_held:
            model.close()

    @contextmanager
    def used(self, name: str, version: str | None = None) -> Iterator[ServedModel]:
        """Return a version and keep it open within a block, even if it is reloaded.

        Raises:
            OipError: As from `served`, when the block begins.
        """
        served = self.begin_use(name, version)
        try:
            yield served
        finally:
            self.end_use(served)

    def begin_use(self, name: str, version: str | None) -> ServedModel:
        """Return a version and keep it open until `end_use`.

        Raises:
            OipError: As from `served`.
        """
        with self._holding:
            served = self.served(name, version)
            self._uses.begin(served.model)
        return served

    def begin_use_again(self, served: ServedModel) -> bool:
        """Begin another use of a version, as `begin_use`; return False if it is not served now."""
        with self._holding:
            entry = self._entries.get(served.name)
            state = None if entry is None else entry.states.get(served.version)
            if state is None or state.served is not served:
                return False
            self._uses.begin(served.model)
        return True

    def end_use(self, served: ServedModel) -> None:
        """End a use that `begin_use` or `begin_use_again` began."""
        self._uses.end(served.model)

    def is_ready(self, name: str, version: str | None = None) -> bool:
        """Whether the model exists and can be run."""
        try:
            self.served(name, version)
        except OipError:
            return False
        return True

    @property
    def ready_names(self) -> tuple[str, ...]:
        """Names of the models that can be run, in order."""
        return tuple(name for name, entry in tuple(self._entries.items()) if entry.order)

    def served(self, name: str, version: str | None = None) -> ServedModel:
        """Return a version of a model that is ready.

        Args:
            name: Name of the model.
            version: Version; None, an empty text or `-1` for the latest.

        Raises:
            OipError: The model does not exist, or is not ready.
        """
        return self._named(name).served(version)

    def has(self, model: Model) -> bool:
        """Whether a model is served."""
        return any(
            state.served is not None and state.served.model is model
            for entry in tuple(self._entries.values())
            for state in tuple(entry.states.values())
        )

    def state(self, name: str, version: str | None = None) -> VersionState:
        """Return the state of a version, by default of the latest."""
        return self._named(name).state(version)

    def counts(self, name: str, version: str | None = None) -> Counts:
        """Return the counts of a version's requests since the start; by default the latest's."""
        state = self._named(name).state(version)
        return counts_of(state.metrics, state.joined)

    def metrics(self, name: str | None) -> RequestMetrics:
        """Return the metrics of native runs of the latest version, as `Named.metrics`."""
        return self._unnamed if name is None else self._named(name).state(None).native_metrics

    def native_counts(self, name: str | None, version: str | None = None) -> Counts:
        """Return the counts of native clients' runs, by default of the latest version."""
        if name is None:
            return counts_of(self._unnamed)
        return counts_of(self._named(name).state(version).native_metrics)

    def index(self, *, only_ready: bool = False) -> list[dict[str, str]]:
        """Return every version with its state, and why it is not ready.

        Raises:
            OipError: Two models would have one name.
        """
        for name in self._polled():
            self._entries.setdefault(name, ModelEntry(name))
        rows = [row for entry in tuple(self._entries.values()) for row in entry.rows()]
        return [row for row in rows if row["state"] == State.READY.name or not only_ready]

    def _polled(self) -> Mapping[str, Source]:
        try:
            return self._find()
        except InputError as error:
            raise OipError(f"failed to poll from model repository: {error}") from error

    def _named(self, name: str) -> ModelEntry:
        entry = self._entries.get(name)
        if entry is None:
            raise OipError(f"Request for unknown model: '{name}' is not found", Code.NOT_FOUND)
        return entry


def _warn(name: str, wanted: Mapping[str, ModelSource]) -> None:
    """Log what the configuration of a model says in vain."""
    unused = {key for each in wanted.values() if each.config for key in each.config.unused}
    for key in sorted(unused):
        _LOG.warning("Parameter `%s` of model `%s` changes nothing.", printable(key), name)


def _discard(entry: ModelEntry, made: Mapping[str, ServedModel]) -> None:
    """Close models that were loaded in vain."""
    for version, served in made.items():
        state = entry.states[version]
        if state.served is None or state.served.model is not served.model:
            state.fail("another version could not be loaded")
            served.model.close()
