"""Thread of a language model that takes its answers by turns."""

import logging
import threading
from collections import deque
from dataclasses import dataclass
from math import ceil
from time import monotonic

from tightship.driver.texts.answer import Asked, Ended
from tightship.driver.texts.session_slots import SessionSlots, Slot, sizes
from tightship.driver.texts.text_counts import TextCounts
from tightship.errors import StoppedError, TightshipError
from tightship.text.generation import Generation

_LOG = logging.getLogger(__name__)


class BusyError(TightshipError):
    """A model has as many requests waiting as may.

    Attributes:
        retry_s: Seconds after which another request may find a place.
    """

    def __init__(self, message: str, retry_s: int) -> None:
        super().__init__(message)
        self.retry_s = retry_s


@dataclass(slots=True, eq=False)
class Running:
    """Answer that has a session."""

    asked: Asked
    slot: Slot
    answer: Generation | None = None
    has_begun: bool = False

    @property
    def reads_a_token(self) -> bool:
        """Whether the next step reads a single token, and the client is there."""
        if self.answer is None or self.asked.flag.is_set():
            return False
        return len(self.answer.part) == 1


class TextWorker:
    """Runs the answers of one model in one thread: a step of each, in turn.

    A long prompt runs in parts between the steps of others. One thread suffices, because kernels
    have threads of their own, and it takes one arena.
    """

    def __init__(
        self,
        name: str,
        slots: SessionSlots,
        waiting_max: int,
        counts: TextCounts | None = None,
    ) -> None:
        """Begin to wait for requests.

        Args:
            name: Name of the model.
            slots: Its sessions.
            waiting_max: Requests that may wait for a session.
            counts: Counts of its answers, which may outlive it; None for new ones.
        """
        self.counts = TextCounts() if counts is None else counts
        self._name, self._slots, self._waiting_max = name, slots, waiting_max
        self._waiting = deque[Asked]()
        self._running: list[Running] = []
        self._changed = threading.Condition()
        self._is_ending = False
        self._took_s = 1.0
        """Seconds that answers took lately."""
        self._thread = threading.Thread(target=self._run, name="tightship-text", daemon=True)
        self._thread.start()

    @property
    def context(self) -> int:
        """Most tokens of prompt and answer."""
        return self._slots.context

    @property
    def sessions(self) -> int:
        """Answers that may run at once."""
        return self._slots.count

    @property
    def load(self) -> tuple[int, int]:
        """Answers that run, and requests that wait."""
        return len(self._running), len(self._waiting)

    def ask(self, asked: Asked) -> None:
        """Ask for an answer; may be called from any thread.

        Raises:
            BusyError: As many requests wait as may, or the model is being closed.
        """
        with self._changed:
            waiting = len(self._waiting)
            is_free = not waiting and len(self._running) < self._slots.count
            if self._is_ending or (not is_free and waiting >= self._waiting_max):
                self.counts.refuse()
                after_s = max(1, ceil(self._took_s * (waiting + 1) / self._slots.count))
                raise BusyError(
                    f"{len(self._running)} answers run and {waiting} requests wait for the model "
                    f"`{self._name}`; try again in {after_s} s",
                    after_s,
                )
            self._waiting.append(asked)
            self._changed.notify()

    def wake(self) -> None:
        """Notice flags of requests that wait."""
        with self._changed:
            self._changed.notify()

    def stop(self) -> None:
        """End all answers after their current step."""
        with self._changed:
            for asked in (*self._waiting, *(each.asked for each in self._running)):
                asked.flag.set()
            self._changed.notify()

    def end(self) -> None:
        """Take no further requests; the sessions are closed when those that came are answered."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def _run(self) -> None:
        while self._wait():
            alone = list(self._running)
            for together in self._groups():
                if self._advance_together(together):
                    alone = [each for each in alone if each not in together]
            for running in alone:
                self._advance(running)
        self._slots.close()

    def _groups(self) -> list[list[Running]]:
        """Return answers that read a token each, in groups of 2, 4, ..."""
        if self._slots.joint is None:
            return []
        ready = [each for each in self._running if each.reads_a_token]
        groups: list[list[Running]] = []
        for size in sizes(len(ready)):
            while len(ready) >= size:
                groups.append(ready[:size])
                ready = ready[size:]
        return groups

    def _advance_together(self, group: list[Running]) -> bool:
        """Run the model once for several answers; False if each has to run by itself."""
        joint = self._slots.joint
        assert joint is not None
        answers = [each.answer for each in group if each.answer is not None]
        try:
            logits = joint.step(
                [each.slot.session for each in group], [each.part[0] for each in answers]
            )
        except Exception:  # noqa: BLE001 - the one that fails does so by itself, and is told
            _LOG.debug("A joint step failed.", exc_info=True)
            return False
        for each, answer, row in zip(group, answers, logits, strict=True):
            try:
                piece = answer.go_on(row)
            except Exception as error:  # noqa: BLE001 - of this request alone, which says it
                self._finish(each, Ended(None, error=error))
            else:
                self._report(each, answer, piece)
        return True

    def _wait(self) -> bool:
        """Wait for something to do; False at the end."""
        with self._changed:
            while True:
                self._begin()
                if self._running:
                    return True
                if self._is_ending and not self._waiting:
                    return False
                self._changed.wait()

    def _begin(self) -> None:
        """Give sessions to requests in the order in which they came; the lock is held."""
        gone = [asked for asked in self._waiting if asked.flag.is_set()]
        for asked in gone:
            self._waiting.remove(asked)
            _report(asked, Ended(None, error=StoppedError("The client left.")))
        while self._waiting:
            asked = self._waiting[0]
            slot = self._slots.take(asked.prompt, asked.tokens_max(self._slots.context))
            if slot is None:
                return
            self._waiting.popleft()
            self._running.append(Running(asked, slot))

    def _advance(self, running: Running) -> None:
        """Run the model once for an answer."""
        asked, answer = running.asked, running.answer
        try:
            if asked.flag.is_set():
                raise StoppedError("The client left.")  # noqa: TRY301  as a step would
            if answer is None:
                session = running.slot.session
                answer = running.answer = session.answer(asked.prompt, asked.wanted, asked.flag)
            piece = answer.advance()
        except Exception as error:  # noqa: BLE001 - reported to the request, which says it
            self._finish(running, Ended(None, error=error))
            return
        self._report(running, answer, piece)

    def _report(self, running: Running, answer: Generation, piece: str) -> None:
        """Report what a step made certain, and the end."""
        if answer.tokens and not running.has_begun:
            running.has_begun = True
            self.counts.begin(monotonic() - running.asked.came_s)
        if piece:
            _report(running.asked, piece)
        if answer.finish_reason is not None:
            counts = answer.prompt_tokens, answer.cached_tokens, len(answer.tokens)
            self._finish(running, Ended(answer.finish_reason, *counts))

    def _finish(self, running: Running, end: Ended) -> None:
        with self._changed:
            self._running.remove(running)
            self._slots.give_back(running.slot)
        self.counts.end(end)
        if end.error is None:
            self._took_s += (monotonic() - running.asked.came_s - self._took_s) / 4
        _report(running.asked, end)


def _report(asked: Asked, said: str | Ended) -> None:
    """Tell a request what came; one that is gone does not disturb the others."""
    try:
        asked.report(said)
    except Exception:  # noqa: BLE001 - the loop of a server that has ended
        _LOG.debug("A request is gone.", exc_info=True)
