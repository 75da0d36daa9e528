"""Requests that use models, which are closed only when no request uses them any more."""

import threading

from tightship.model import Model


class ModelUses:
    """Counts of the requests that use each model, under the lock of the repository."""

    def __init__(self, lock: threading.Lock) -> None:
        """Count under a lock, which `begin` and `wait_until_unused` expect to be held."""
        self._lock, self._unused = lock, threading.Condition(lock)
        self._counts: dict[Model, int] = {}
        self._waiting = 0

    def begin(self, model: Model) -> None:
        """Count a use of a model."""
        self._counts[model] = self._counts.get(model, 0) + 1

    def end(self, model: Model) -> None:
        """End a use of a model."""
        with self._lock:
            left = self._counts[model] - 1
            if left:
                self._counts[model] = left
                return
            del self._counts[model]
            if self._waiting:
                self._unused.notify_all()

    def wait_until_unused(self, model: Model) -> None:
        """Wait until no request uses a model; the lock is free meanwhile."""
        self._waiting += 1
        while model in self._counts:
            self._unused.wait()
        self._waiting -= 1
