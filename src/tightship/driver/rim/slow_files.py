"""Files that may never answer, as those of a network or a program that is gone.

Whoever asks the kernel about such a file, or closes it, may wait for ever. So threads of their own
ask, and are given up. Of one mount, and in all, only so many are stuck at once.
"""

import fcntl
import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tightship.driver.rules.status import failure

PATIENCE_S = 10.0
"""How long an answer is waited for."""

ASKING_MAX = 8
"""Threads that ask files of one mount."""

THREADS_MAX = 32
WAITING_MAX = 64
"""Questions that wait for a thread; while there are more, no such file is taken."""

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def is_prompt(file: int) -> bool:
    """Whether the kernel answers for a file by itself: memory, or a pipe without a name."""
    with suppress(OSError):  # it has no seals
        fcntl.fcntl(file, fcntl.F_GET_SEALS)
        return True
    with suppress(OSError):  # it has no name
        return os.readlink(f"/proc/self/fd/{file}").startswith("pipe:[")
    return False


@dataclass(frozen=True, slots=True)
class _Question:
    mount: str
    ask: Callable[[], Any]
    answer: "Future[Any]"


class SlowFiles:
    """Asks files that are not prompt. May be used from several threads.

    Attributes:
        patience_s: How long an answer is waited for.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        """Starts nothing before it is needed."""
        self.patience_s = patience_s
        self._lock = threading.Lock()
        self._waiting: deque[_Question] = deque()
        self._asking = Counter[str]()

    @property
    def is_full(self) -> bool:
        """Whether so much waits that no more such files may come."""
        return len(self._waiting) >= WAITING_MAX

    @property
    def asking_count(self) -> int:
        """Threads that ask now; those of files that never answer are among them for ever."""
        with self._lock:
            return self._asking.total()

    def answer(self, file: int, ask: Callable[[], T]) -> T:
        """What `ask` returns or raises; asked by this thread if the file is prompt.

        An `ask` that is given up may still end, later than this.

        Raises:
            DriverError: GENERAL_FAILURE: the file does not answer.
        """
        if is_prompt(file):
            return ask()
        future = self.begin(file, ask)
        try:
            return future.result(self.patience_s)
        except TimeoutError:
            future.cancel()
            self.tell()
            raise failure("The file of a pool does not answer.") from None

    def begin(self, file: int, ask: Callable[[], T]) -> "Future[T]":
        """Have `ask` called by another thread."""
        question = _Question(_mount_of(file), ask, Future[T]())
        with self._lock:
            self._waiting.append(question)
            if self._asking.total() < THREADS_MAX:
                self._start(self._take())
        return question.answer

    def close_all(self, files: Iterable[int]) -> None:
        """Close files now, and those that are not prompt as soon as that can be."""
        for file in files:
            if is_prompt(file):
                os.close(file)
            else:
                self.begin(file, partial(os.close, file))

    def tell(self) -> None:
        """Tell the log that a file does not answer."""
        _LOG.warning("A client's file does not answer; %d threads ask.", self.asking_count)

    def _start(self, question: _Question | None) -> None:
        if question is None:
            return
        try:
            threading.Thread(target=self._work, args=(question,), daemon=True).start()
        except RuntimeError:  # the system has no more threads: one that works takes it
            self._asking[question.mount] -= 1
            self._waiting.appendleft(question)

    def _next_index(self) -> int | None:
        """Of what waits, the first whose mount may be asked."""
        for index, question in enumerate(self._waiting):
            if self._asking[question.mount] < ASKING_MAX:
                return index
        return None

    def _take(self) -> _Question | None:
        index = self._next_index()
        if index is None:
            return None
        question = self._waiting[index]
        del self._waiting[index]
        self._asking[question.mount] += 1
        return question

    def _work(self, first: _Question) -> None:
        question: _Question | None = first
        while question is not None:
            _carry_out(question)
            with self._lock:
                self._asking[question.mount] -= 1
                self._asking += Counter()  # without mounts that nobody asks
                question = self._take()


def _carry_out(question: _Question) -> None:
    if not question.answer.set_running_or_notify_cancel():
        return
    try:
        found = question.ask()
    except Exception as error:  # noqa: BLE001 - for whoever has asked
        question.answer.set_exception(error)
    else:
        question.answer.set_result(found)


def _mount_of(file: int) -> str:
    """By which number the system knows where a file is; it asks nobody for that."""
    try:
        lines = Path(f"/proc/self/fdinfo/{file}").read_text(encoding="ascii").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("mnt_id:")), "")
