"""Inferences that were quick the last times, which need no thread of their own."""

from collections import deque

from tightship.driver.oip.served_model import ServedModel

QUICK_NS = 500_000
"""Duration below which calls are answered by the thread that reads them: another costs 100 us."""
RECENT = 4
"""Runs of which the quickest counts, because a busy machine interrupts some."""
KEYS_MAX = 256
"""Models and forms of requests whose durations are known."""


class QuickRuns:
    """Durations of the last inferences. May be used from several threads."""

    def __init__(self) -> None:
        """Know none."""
        self._took_ns: dict[object, deque[int]] = {}

    def have(self, key: object) -> bool:
        """Whether inferences of a key, None for none, were quick the last times."""
        took = None if key is None else self._took_ns.get(key)
        return took is not None and min(tuple(took)) < QUICK_NS

    def note(self, served: ServedModel, key: object, duration_ns: int) -> None:
        """Note how long an inference took.

        Args:
            served: The model, of which nothing is noted if equal shapes may take other times.
            key: What says that inferences take equally long; None for none.
            duration_ns: Nanoseconds.
        """
        if key is None or not served.has_even_runs:
            return
        took = self._took_ns.get(key)
        if took is None:
            if len(self._took_ns) >= KEYS_MAX:
                self._took_ns.clear()
            took = self._took_ns.setdefault(key, deque(maxlen=RECENT))
        took.append(duration_ns)

    def forget(self) -> None:
        """Forget all, because a model has changed."""
        self._took_ns.clear()
