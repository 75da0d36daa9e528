"""Language models of a server, by the models of its repository."""

import logging
import threading
from dataclasses import dataclass, field

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.repository import Repository
from tightship.driver.oip.served_model import ServedModel
from tightship.driver.printable import printable
from tightship.driver.texts.answer import Asked, Ended
from tightship.driver.texts.encoder_models import EncoderModels
from tightship.driver.texts.session_slots import SessionSlots
from tightship.driver.texts.text_counts import TextCounts, TextState, text_metrics
from tightship.driver.texts.text_limits import TextLimits
from tightship.driver.texts.text_worker import TextWorker
from tightship.errors import FormatError, GraphError
from tightship.model import Model
from tightship.text.tokenizer import Tokenizer

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextModel:
    """Language model that is ready.

    Attributes:
        name: Name for clients.
        tokenizer: Its tokenizer.
        worker: Thread of its answers.
    """

    name: str
    tokenizer: Tokenizer
    worker: TextWorker


@dataclass(slots=True)
class TextModels:
    """Language models of a repository. May be used from several threads.

    Attributes:
        repository: The models.
        limits: Limits of each.
        encoders: Models that give vectors or scores instead of texts.
    """

    repository: Repository
    limits: TextLimits
    encoders: EncoderModels = field(init=False)
    _counts: dict[str, TextCounts] = field(default_factory=dict)
    _made: dict[Model, TextModel] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.encoders = EncoderModels(self.repository, self.limits)
        self.repository.on_withdrawn.append(self._withdraw)

    @property
    def names(self) -> list[str]:
        """Names of the language models that are ready."""
        names = self.repository.ready_names
        return [name for name in names if self._has_texts(self.repository.served(name))]

    def _has_texts(self, served: ServedModel) -> bool:
        return served.model.has_texts and not self.encoders.has(served)

    def prepare(self) -> None:
        """Open the sessions of all models and make their programs, so that no request waits.

        A model whose vocabulary or graph is not supported is logged, and others are served.

        Raises:
            CapacityError: A model's sessions do not fit.
            InputError: An option does not fit, or a package of the extra `text` is missing.
        """
        for name in self.names:
            with self.repository.used(name) as served:
                try:
                    self._text_model(served, is_early=True)
                except (FormatError, GraphError) as error:
                    _LOG.error("%s", printable(str(error)))
        self.encoders.prepare()

    def find(self, name: str) -> TextModel:
        """Return a language model.

        Raises:
            OipError: None of this name is ready.
            TightshipError: Its sessions cannot be opened.
        """
        with self.repository.used(name) as served:
            return self._text_model(served)

    def check_version(self, name: str, version: str | None) -> None:
        """Check that a version of a model is the one that answers, the latest.

        Raises:
            OipError: The model or its version is not ready, or is another one.
        """
        if version is None:
            return
        latest = self.repository.served(name)
        if self.repository.served(name, version).model is not latest.model:
            raise OipError(
                f"version {version} of `{name}` does not answer texts; version {latest.version} "
                "does", Code.NOT_FOUND,
            )  # fmt: skip

    def ask(self, name: str, asked: Asked) -> TextModel:
        """Ask a model for an answer; it stays open until the answer ends.

        Raises:
            BusyError: As many requests wait as may.
            OipError: No model of this name is ready.
        """
        served = self.repository.begin_use(name, None)
        report = asked.report

        def reported(said: str | Ended) -> None:
            if isinstance(said, Ended):
                self.repository.end_use(served)
            report(said)

        asked.report = reported
        try:
            found = self._text_model(served)
            found.worker.ask(asked)
        except BaseException:
            self.repository.end_use(served)
            raise
        return found

    def metrics(self) -> str:
        """Return the metrics of all models that have been asked, in Prometheus' text format."""
        workers = {each.name: each.worker for each in tuple(self._made.values())}
        states = []
        for name, counts in tuple(self._counts.items()):
            worker = workers.get(name)
            now = (0, 0, 0) if worker is None else (*worker.load, worker.sessions)
            states.append(TextState(name, counts, *now))
        return text_metrics(states) + self.encoders.metrics()

    def stop(self) -> None:
        """End all answers after their current step."""
        for each in tuple(self._made.values()):
            each.worker.stop()

    def close(self) -> None:
        """End all threads, once what runs is answered."""
        found = tuple(self._made.values())
        for each in found:
            each.worker.end()
        for each in found:
            each.worker.join()

    def _text_model(self, served: ServedModel, *, is_early: bool = False) -> TextModel:
        with self._making:
            found = self._made.get(served.model)
            if found is None:
                found = self._made[served.model] = self._open(served, is_early=is_early)
            return found

    def _open(self, served: ServedModel, *, is_early: bool) -> TextModel:
        """Open a language model; before any request, all its programs are made too."""
        if self.encoders.has(served):
            raise OipError(
                f"`{served.name}` is an encoder; use /v1/embeddings or /v1/rerank", Code.NOT_FOUND
            )
        if not served.model.has_texts or not self.repository.has(served.model):
            raise OipError(
                f"`{served.name}` is not a language model with a vocabulary", Code.NOT_FOUND
            )
        slots = SessionSlots.of(served.model, self.limits)
        if is_early:
            slots.prepare()
        counts = self._counts.setdefault(served.name, TextCounts())
        worker = TextWorker(served.name, slots, self.limits.waiting, counts)
        return TextModel(served.name, served.model.tokenizer, worker)

    def _withdraw(self, model: Model) -> None:
        """Let a model go that is replaced or unloaded: it is closed when its answers have ended."""
        with self._making:
            found = self._made.pop(model, None)
        if found is not None:
            found.worker.end()
            found.worker.join()  # its programs are closed before those of the model
