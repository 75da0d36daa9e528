"""Keeps data that threads share consistent in the child of a fork."""

import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """An object that threads share under its lock; its holder takes no other such lock."""

    @property
    def lock(self) -> threading.RLock:
        """Lock that is held while the process forks."""

    def forked(self) -> None:
        """Reset the state in the child, which has only the forking thread; called under `lock`."""


_guarded: "weakref.WeakSet[Forked]" = weakref.WeakSet()
_forking: list[Forked] = []


def guard(thing: Forked) -> None:
    """Hold the lock of `thing` during each fork and call its `forked` in the child, while it lives.

    Args:
        thing: The object to keep consistent; only a weak reference to it is kept.
    """
    _guarded.add(thing)


def _before() -> None:
    # A strong reference in `_forking` keeps each object alive from `_before` to `_after`, so that
    # every lock taken is released.
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
