"""Threads for system calls on files that may never answer, such as those of a dead file server.

Such a call, even a `close`, may block forever, so its thread is given up after a time. The number
of threads that are stuck is limited for each mount and in total.
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

from tightship.driver.memory.timer_thread import TimerThread
from tightship.driver.types.status import failure

PATIENCE_S = 10.0
"""Seconds to wait for an answer."""

ASKING_MAX = 8
"""Threads in calls on files of one mount."""

THREADS_MAX = 32
IDLE_S = 1.0
"""Seconds that an idle thread waits for the next call."""

WAITING_MAX = 64
"""Calls that wait for a thread, above which messages with such files are refused."""

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def is_prompt(file: int) -> bool:
    """Whether calls on a file cannot block on others: memory, or an unnamed pipe."""
    with suppress(OSError):  # fails for files that cannot be sealed
        fcntl.fcntl(file, fcntl.F_GET_SEALS)
        return True
    with suppress(OSError):  # fails where `/proc` is not mounted
        return os.readlink(f"/proc/self/fd/{file}").startswith("pipe:[")
    return False


@dataclass(frozen=True, slots=True)
class _Question:
    mount: bytes
    ask: Callable[[], Any]
    answer: "Future[Any]"

    def carry_out(self) -> None:
        """Make the call, unless it was given up."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            found = self.ask()
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            self.answer.set_exception(error)
        else:
            self.answer.set_result(found)


Box = SimpleQueue[_Question | None]
"""Queue in which an idle thread gets its next call, or None to end."""


class FileProber:
    """Calls on files that may block. May be used from several threads.

    Attributes:
        patience_s: Seconds to wait for an answer.
        alarms: Timers for callers that do not wait.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        """Create no threads yet."""
        self.patience_s = patience_s
        self.alarms = TimerThread()
        self._lock = threading.Lock()
        self._waiting: deque[_Question] = deque()
        self._asking = Counter[bytes]()
        self._idle: list[Box] = []
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        """Whether too many calls wait for more such files to be accepted."""
        return len(self._waiting) >= WAITING_MAX

    @property
    def asking_count(self) -> int:
        """Threads that are in a call now, including those stuck forever."""
        with self._lock:
            return self._asking.total()

    def answer(self, file: int, ask: Callable[[], T]) -> T:
        """Return or raise the result of `ask`, called by this thread if the file is prompt.

        A call that was given up may still complete later.

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
        """Call `ask` in another thread."""
        question = _Question(_mount_of(file), ask, Future[T]())
        with self._lock:
            self._waiting.append(question)
            if self._asking.total() < THREADS_MAX:
                self._start(self._take())
        return question.answer

    def close_all(self, files: Iterable[int]) -> None:
        """Close files; those that may block are closed by another thread."""
        for file in files:
            if is_prompt(file):
                os.close(file)
            else:
                self.begin(file, partial(os.close, file))

    def tell(self) -> None:
        """Log that a file does not answer."""
        _LOG.warning("A client's file does not answer; %d threads ask.", self.asking_count)

    def close(self) -> None:
        """End idle threads, now and later."""
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
        except RuntimeError:  # no more threads: a busy one will take the call
            self._end(question.mount)
            self._waiting.appendleft(question)

    def _next_index(self) -> int | None:
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
            mount, question = question.mount, None  # frees what the call refers to
            question = self._next(mount, box)

    def _next(self, mount: bytes, box: Box) -> _Question | None:
        """Return a thread's next call; None if none comes for a while."""
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
    """Return the mount line of a descriptor from `/proc`, which never blocks on the file."""
    try:
        with open(f"/proc/self/fdinfo/{file}", "rb", buffering=0) as said:
            lines = said.read().splitlines()
    except OSError:
        return b""
    return next((line for line in lines if line.startswith(b"mnt_id:")), b"")
