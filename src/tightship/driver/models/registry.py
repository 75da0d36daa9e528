"""Models of a driver, prepared from pools or known by name."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager

from tightship._core import RequestMetrics, StopFlag
from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.reserve import reserved
from tightship.driver.models.cached_sources import Sources
from tightship.driver.models.loaded import Loaded, loaded, with_images
from tightship.driver.models.loader import NAME, KeepingLoader, Loader
from tightship.driver.models.model_cache import ModelCache
from tightship.driver.models.named import Named
from tightship.driver.models.sources import opened
from tightship.driver.service.effects import AllocateBuffer, PrepareModel
from tightship.driver.service.events import PrepareFinished
from tightship.driver.types.model import ModelName
from tightship.driver.types.operand_type import OperandType
from tightship.driver.types.snapshot import ModelShare
from tightship.driver.types.status import EXHAUSTED, ErrorStatus, ExecutionPreference
from tightship.errors import DriverError, StoppedError, TightshipError
from tightship.model import Model

NAME_MAX = 60
"""Characters of a model's name in a snapshot."""

_LOG = logging.getLogger(__name__)
_OUR_FAULT = "The driver failed with an unexpected error; its log has the details."


class Models:
    """Models of a driver by number; those it was started with also have a name."""

    def __init__(
        self, mappings: Mappings, named: Named, cache: ModelCache | None, threads: int = 1
    ) -> None:
        """Create an empty table; models prepared for a fast single answer use `threads`."""
        self._mappings = mappings
        self._named = named
        self._cache = cache
        self._threads = threads
        self._models: dict[int, Loaded] = {}
        self._held: dict[int, Model] = {}
        self._names: dict[int, str] = {}

    def prepare(self, asked: PrepareModel, stop: StopFlag) -> PrepareFinished:
        """Load a model; once `stop` is set it is abandoned at the next step."""
        try:
            with reserved():
                found = self._load(asked, stop)
        except StoppedError as error:
            return _refused(asked, ErrorStatus.MISSED_DEADLINE_TRANSIENT, str(error))
        except DriverError as error:
            return _refused(asked, ErrorStatus(error.status), str(error))
        except EXHAUSTED as error:
            return _refused(asked, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, str(error))
        except TightshipError as error:
            return _refused(asked, ErrorStatus.GENERAL_FAILURE, str(error))
        except Exception as error:  # noqa: BLE001 - a client's model must not end the driver
            _LOG.error(
                "Preparing a client's model failed with an unexpected error.", exc_info=error
            )
            return _refused(asked, ErrorStatus.GENERAL_FAILURE, _OUR_FAULT)
        self._models[asked.model] = found
        return PrepareFinished(asked.model, ErrorStatus.NONE, found.inputs, found.outputs)

    def _load(self, asked: PrepareModel, stop: StopFlag) -> Loaded:
        source, files, cache = asked.source, asked.cache, self._cache
        arenas = self._named.arenas
        plain = Loader(arenas, stop=stop)
        plain.go_on()
        if source is None:
            assert files is not None, asked
            assert cache is not None, asked
            return cache.read(files, plain)
        if isinstance(source, ModelName):
            return self._known(asked.model, source.name)
        is_fast = asked.preference == ExecutionPreference.FAST_SINGLE_ANSWER
        threads = self._threads if is_fast else 1
        if files is None or cache is None:
            return opened(source, asked.pools, self._mappings, Loader(arenas, threads, stop))
        sources = Sources(asked.pools)
        with closing(KeepingLoader(arenas, threads, stop)) as loader:
            found = opened(source, asked.pools, self._mappings, loader)
            cache.save(files, found, loader.file, sources)
        return found

    def _known(self, number: int, name: str) -> Loaded:
        model = self._named.hold(name)
        try:
            found = loaded(model)
        except DriverError:
            self._named.release(model)
            raise
        self._held[number], self._names[number] = model, name
        return found

    def __getitem__(self, number: int) -> Loaded:
        """Return a prepared model."""
        return self._models[number]

    def metrics(self, number: int) -> RequestMetrics:
        """Return the request metrics of a model."""
        return self._named.metrics(self.name(number))

    def name(self, number: int) -> str | None:
        """Return the name of a model that the driver was started with; None for a client's own."""
        return self._names.get(number)

    def take_image(self, asked: AllocateBuffer) -> bool:
        """Decide whether a new buffer stores an image with channels last, and prepare its models.

        It does if each model that uses the buffer then runs fewer steps.
        """
        kind = asked.value_type
        is_image = kind.operand_type == OperandType.TENSOR_FLOAT32 and len(kind.dimensions) == 4
        if not is_image or 0 in kind.dimensions or len({role[1] for role in asked.roles}) < 2:
            return False
        made: dict[int, Loaded] = {}
        with ExitStack() as undo:
            undo.callback(self._give_back, made)
            is_taken = self._make_ready(asked, made)
            if is_taken:
                self._models |= made
                undo.pop_all()
            return is_taken

    def _make_ready(self, asked: AllocateBuffer, made: dict[int, Loaded]) -> bool:
        """Collect the models of a buffer, prepared for its image, in `made`; False without one."""
        load = Loader(self._named.arenas).like
        for number in {role[0] for role in asked.roles}:
            used = [role for role in asked.roles if role[0] == number]
            inputs = [index for _, is_output, index in used if not is_output]
            outputs = [index for _, is_output, index in used if is_output]
            ready = with_images(self._models[number], inputs, outputs, load)
            if ready is None:
                return False
            made[number] = ready
        return True

    def _give_back(self, made: Mapping[int, Loaded]) -> None:
        for number, found in made.items():
            if found is not self._models[number]:
                found.programs[-1].close()

    def shares(self) -> dict[int, ModelShare]:
        """Return the holdings of clients' models; weights of named models are not theirs."""
        with self._own() as own:
            return {
                number: _share(
                    number,
                    found.programs[0].plan.model if found.programs else NAME,
                    found.programs,
                    0 if set(own.values()) & set(found.programs) else found.weights_bytes,
                )
                for number, found in self._models.copy().items()
            }

    def own_shares(self) -> tuple[ModelShare, ...]:
        """Return the holdings of named models."""
        with self._own() as own:
            return tuple(
                _share(0, name, (model,), model.memory_stats().weights_bytes)
                for name, model in own.items()
            )

    def arena_bytes(self) -> int:
        """Return the size of the arenas that all models share."""
        return self._named.arenas.held_bytes

    @contextmanager
    def _own(self) -> Iterator[Mapping[str, Model]]:
        own = self._named.hold_all()
        try:
            yield own
        finally:
            for model in own.values():
                self._named.release(model)

    def drop(self, number: int) -> None:
        """Free a client's model, or release a named one."""
        gone, held = self._models.pop(number, None), self._held.pop(number, None)
        self._names.pop(number, None)
        if held is not None:
            self._named.release(held)
        elif gone is not None:
            gone.close()


def _share(number: int, name: str, programs: Sequence[Model], weights_bytes: int) -> ModelShare:
    arena_bytes = max((program.plan.arena_bytes for program in programs), default=0)
    return ModelShare(number, name[:NAME_MAX], weights_bytes, arena_bytes)


def _refused(asked: PrepareModel, status: ErrorStatus, message: str) -> PrepareFinished:
    return PrepareFinished(asked.model, status, message=message)
