"""Times at which numbered things are due."""

import heapq


class Timers:
    """Due time of each number, in a heap whose size is of the order of the numbers set."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def set(self, number: int, time_ns: int) -> None:
        """Set or move the time at which a number is due."""
        self._times[number] = time_ns
        heapq.heappush(self._heap, (time_ns, number))
        if len(self._heap) > 64 + 2 * len(self._times):
            self._heap = [(time, each) for each, time in self._times.items()]
            heapq.heapify(self._heap)

    def cancel(self, number: int) -> None:
        """Remove a number, if it is there."""
        self._times.pop(number, None)

    def next_ns(self) -> int | None:
        """Return the earliest due time, or None."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ns: int) -> int | None:
        """Remove and return the number that was due first; None if none is due yet."""
        first_ns = self.next_ns()
        if first_ns is None or first_ns > now_ns:
            return None
        _, number = heapq.heappop(self._heap)
        del self._times[number]
        return number

    def __len__(self) -> int:
        return len(self._times)
