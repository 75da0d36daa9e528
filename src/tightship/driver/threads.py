"""Threads of a driver for work that comes, however many the system has."""

from concurrent.futures import ThreadPoolExecutor


class Threads(ThreadPoolExecutor):
    """So many threads at most, one from the beginning: where no further one starts, it works on."""

    def __init__(self, count: int, name: str) -> None:
        """Start the first.

        Raises:
            RuntimeError: The system starts none.
        """
        super().__init__(count, name)
        self.submit(int)

    def _adjust_thread_count(self) -> None:
        """As Python's, which has queued the work already when a thread is to start for it."""
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
