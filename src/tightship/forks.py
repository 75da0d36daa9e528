"""What threads share, made whole again in the child of a fork."""

import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """Something that threads use under a lock of its own, and take under no other such lock."""

    @property
    def lock(self) -> threading.RLock:
        """Free while the process forks."""

    def forked(self) -> None:
        """Become the child's, in which no other thread is; called under the lock."""


_guarded: "weakref.WeakSet[Forked]" = weakref.WeakSet()
_forking: list[Forked] = []


def guard(thing: Forked) -> None:
    """Have forks wait for its lock, and the child told, as long as it lives."""
    _guarded.add(thing)


def _before() -> None:
    _forking.extend(_guarded)
    for thing in _forking:
        thing.lock.acquire()


def _after(*, is_child: bool) -> None:
    for thing in _forking:
        if is_child:
            thing.forked()
        thing.lock.release()
    _forking.clear()


os.register_at_fork(
    before=_before,
    after_in_parent=lambda: _after(is_child=False),
    after_in_child=lambda: _after(is_child=True),
)
