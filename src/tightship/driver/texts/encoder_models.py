"""Encoders of a server: models that give vectors of texts, or scores of pairs."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.repository import Repository
from tightship.driver.oip.served_model import ServedModel
from tightship.driver.printable import printable
from tightship.driver.texts.text_counts import EncoderCounts, encoder_metrics
from tightship.driver.texts.text_limits import TextLimits
from tightship.driver.texts.text_worker import BusyError
from tightship.embedding.embedder import Embedder, embedder_over
from tightship.embedding.encoder_file import is_encoder, open_encoder_file
from tightship.embedding.reranker import Reranker, reranker_over
from tightship.errors import FormatError, TightshipError
from tightship.model import Model

_LOG = logging.getLogger(__name__)
RETRY_S = 1
"""Seconds after which a request may find a place."""

Encoder = Embedder | Reranker
Result = TypeVar("Result")


@dataclass(slots=True)
class EncoderModels:
    """Encoders of a repository. May be used from several threads; runs of one take turns.

    Attributes:
        repository: The models.
        limits: Limits, of which `waiting` counts the requests that wait.
    """

    repository: Repository
    limits: TextLimits
    _made: dict[Model, Encoder] = field(default_factory=dict)
    _known: dict[Model, bool] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _counts: dict[str, EncoderCounts] = field(default_factory=dict)
    _pending: int = 0

    def __post_init__(self) -> None:
        self.repository.on_withdrawn.append(self._withdraw)

    @property
    def names(self) -> list[str]:
        """Names of the encoders that are ready."""
        names = self.repository.ready_names
        return [name for name in names if self.has(self.repository.served(name))]

    def has(self, served: ServedModel) -> bool:
        """Whether a model is an encoder of texts."""
        found = self._known.get(served.model)
        if found is None:
            try:
                found = is_encoder(served.source.path)
            except (FormatError, OSError):
                found = False
            self._known[served.model] = found
        return found

    def prepare(self) -> None:
        """Make the programs of all encoders, so that no request waits.

        One that cannot be opened is logged, and others are served.
        """
        for name in self.names:
            with self.repository.used(name) as served:
                try:
                    self._encoder(served)
                except TightshipError as error:
                    _LOG.error("%s", printable(str(error)))

    def answer(self, name: str, ask: Callable[[Encoder], Result]) -> Result:
        """Call a function with an encoder, which stays open meanwhile.

        Raises:
            BusyError: As many requests wait as may.
            OipError: No encoder of this name is ready.
            TightshipError: It cannot be opened, or the function raises it.
        """
        with self._counting:
            if self._pending > self.limits.waiting:
                raise BusyError(
                    f"{self._pending} requests for vectors or scores wait; try again in "
                    f"{RETRY_S} s",
                    RETRY_S,
                )
            self._pending += 1
        try:
            with self.repository.used(name) as served:
                return ask(self._encoder(served))
        finally:
            with self._counting:
                self._pending -= 1

    def count(self, name: str, texts: int, tokens: int) -> None:
        """Count texts that a model has answered, and their tokens."""
        with self._counting:
            before = self._counts.get(name, EncoderCounts())
            self._counts[name] = EncoderCounts(before.texts + texts, before.tokens + tokens)

    def metrics(self) -> str:
        """Return the metrics of all encoders that have answered, in Prometheus' text format."""
        with self._counting:
            return encoder_metrics(self._counts, self._pending)

    def _encoder(self, served: ServedModel) -> Encoder:
        if not self.has(served):
            raise OipError(f"`{served.name}` is not a model that gives vectors", Code.NOT_FOUND)
        with self._making:
            found = self._made.get(served.model)
            if found is None:
                file = open_encoder_file(served.source.path)
                outputs = served.model.output_types.values()
                has_vectors = any(shape is not None and len(shape) == 3 for _, shape in outputs)
                if has_vectors:
                    pooling = self.limits.pooling or file.pooling
                    found = embedder_over(served.model, file.with_choices(pooling, None))
                else:
                    found = reranker_over(served.model, file)
                self._made[served.model] = found
            return found

    def _withdraw(self, model: Model) -> None:
        """Let a model go that is replaced or unloaded; its owner closes it."""
        with self._making:
            self._made.pop(model, None)
            self._known.pop(model, None)
