"""Thread pool of the driver that works even if the system starts few threads."""

from concurrent.futures import ThreadPoolExecutor


class Threads(ThreadPoolExecutor):
    """Pool of up to `count` threads, of which one always runs; it suffices if no other starts."""

    def __init__(self, count: int, name: str) -> None:
        """Start the first thread.

        Raises:
            RuntimeError: The system cannot start it.
        """
        super().__init__(count, name)
        self.submit(int)

    def _adjust_thread_count(self) -> None:
        """Start a thread if one is needed; without one, the running threads do the queued work."""
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
