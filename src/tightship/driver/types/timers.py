"""When something is due."""

import heapq


class Timers:
    """A time for each of some numbers; room and time of the order of how many there are."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def set(self, number: int, time_ns: int) -> None:
        """The number is due at a time, no longer at another."""
        self._times[number] = time_ns
        heapq.heappush(self._heap, (time_ns, number))
        if len(self._heap) > 64 + 2 * len(self._times):
            self._heap = [(time, each) for each, time in self._times.items()]
            heapq.heapify(self._heap)

    def cancel(self, number: int) -> None:
        """The number is not due any more; harmless if it was not."""
        self._times.pop(number, None)

    def next_ns(self) -> int | None:
        """When the first is due."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ns: int) -> int | None:
        """A number whose time has come, which is not due any more; the earliest first."""
        first_ns = self.next_ns()
        if first_ns is None or first_ns > now_ns:
            return None
        _, number = heapq.heappop(self._heap)
        del self._times[number]
        return number

    def __len__(self) -> int:
        return len(self._times)
