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
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tightship.driver.memory.alarms import Alarms
from tightship.driver.types.status import failure

PATIENCE_S = 10.0
"""How long an answer is waited for."""

ASKING_MAX = 8
"""Threads that ask files of one mount."""

THREADS_MAX = 32
IDLE_S = 1.0
"""How long a thread that has nothing to ask stays for the next question."""

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
    mount: bytes
    ask: Callable[[], Any]
    answer: "Future[Any]"

    def carry_out(self) -> None:
        """Ask, unless it was given up before."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            found = self.ask()
        except Exception as error:  # noqa: BLE001 - for whoever has asked
            self.answer.set_exception(error)
        else:
            self.answer.set_result(found)


Box = SimpleQueue[_Question | None]
"""Where a thread that is idle is given its next question, or None to end."""


class SlowFiles:
    """Asks files that are not prompt. May be used from several threads.

    Attributes:
        patience_s: How long an answer is waited for.
        alarms: For whoever has begun a question and does not wait for its answer.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        """Starts nothing before it is needed."""
        self.patience_s = patience_s
        self.alarms = Alarms()
        self._lock = threading.Lock()
        self._waiting: deque[_Question] = deque()
        self._asking = Counter[bytes]()
        self._idle: list[Box] = []
        self._is_closed = False

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

    def close(self) -> None:
        """From now on, no thread stays that has nothing to ask."""
        with self._lock:
            self._is_closed = True
            while self._idle:
                self._idle.pop().put(None)

    def _start(self, question: _Question | None) -> None:
        if question is None:
            return
        if self._idle:
            self._idle.pop().put(question)
            return
        try:
            threading.Thread(target=self._work, args=(question,), daemon=True).start()
        except RuntimeError:  # the system has no more threads: one that works takes it
            self._end(question.mount)
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

    def _end(self, mount: bytes) -> None:
        self._asking[mount] -= 1
        if not self._asking[mount]:
            del self._asking[mount]

    def _work(self, first: _Question) -> None:
        question: _Question | None = first
        box = Box()
        while question is not None:
            question.carry_out()
            mount, question = question.mount, None  # an idle thread keeps nothing of it
            question = self._next(mount, box)

    def _next(self, mount: bytes, box: Box) -> _Question | None:
        """What a thread that has asked a mount asks next; None if nothing comes for a while."""
        with self._lock:
            self._end(mount)
            question = self._take()
            if question is not None:
                return question
            if self._is_closed:
                return None
            self._idle.append(box)
        with suppress(Empty):
            return box.get(timeout=IDLE_S)
        with self._lock:
            if box in self._idle:
                self._idle.remove(box)
                return None
        return box.get()


def _mount_of(file: int) -> bytes:
    """By which number the system knows where a file is; it asks nobody for that."""
    try:
        with open(f"/proc/self/fdinfo/{file}", "rb", buffering=0) as said:
            lines = said.read().splitlines()
    except OSError:
        return b""
    return next((line for line in lines if line.startswith(b"mnt_id:")), b"")
