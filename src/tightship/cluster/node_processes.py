"""Processes of one node that run models: what each has booked, and what it takes, as gauges too."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tightship.cluster.process_memory import pss_bytes, start_ticks

PERIOD_S = 10.0
"""Seconds between two measurements for the metrics."""
GAUGES = {
    "tightship_booked_bytes": "Memory that a process of Tightship has booked.",
    "tightship_pss_bytes": "Proportional set size of a process of Tightship.",
}
TAGS = ("kind", "model", "pid")


@dataclass(frozen=True, slots=True)
class Process:
    """Process that runs models, or keeps their files.

    Attributes:
        kind: `anchor`, `keeper`, `replica` or `stage`.
        pid: Process id on its node.
        model: Names of its models.
        booked_bytes: Memory that it has booked, which is what is planned for it.
    """

    kind: str
    pid: int
    model: str
    booked_bytes: int


class NodeProcesses:
    """Processes of this node that have registered, measured while they are alive.

    One process measures all of its node, so that the replicas need no thread under their limit, and
    one that is busy is measured too. May be used from several threads.
    """

    def __init__(self) -> None:
        """Start a thread that keeps the gauges of `ray.util.metrics` up to date."""
        self._started: dict[Process, int] = {}
        self._keys: dict[Process, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self._gauges: dict[str, Any] = {}
        threading.Thread(target=self._publish, name="tightship-metrics", daemon=True).start()

    def register(self, process: Process, keys: Sequence[str] = ()) -> None:
        """Add a process and the keys of the weights that it needs; one that has ended is not."""
        try:
            started = start_ticks(process.pid)
        except OSError:
            return
        with self._lock:
            self._started[process] = started
            self._keys[process] = tuple(keys)

    def keys(self) -> set[str]:
        """Return the keys of the weights that processes need that are alive."""
        with self._lock:
            known = dict(self._started)
            keys = dict(self._keys)
        alive = [process for process, started in known.items() if _is_alive(process, started)]
        return {key for process in alive for key in keys.get(process, ())}

    def has_others(self) -> bool:
        """Tell whether a process besides this one is alive."""
        with self._lock:
            known = dict(self._started)
        return any(
            process.pid != os.getpid() and _is_alive(process, started)
            for process, started in known.items()
        )

    def measured(self) -> list[dict[str, Any]]:
        """Return the processes that are alive, in order of their ids, with `pss_bytes`."""
        with self._lock:
            known = dict(self._started)
        found, ended = [], []
        for process, started in sorted(known.items(), key=lambda pair: pair[0].pid):
            try:
                if start_ticks(process.pid) != started:
                    raise ProcessLookupError
                found.append({**asdict(process), "pss_bytes": pss_bytes(process.pid)})
            except OSError:
                ended.append(process)
        self._forget(ended)
        return found

    def _forget(self, ended: list[Process]) -> None:
        with self._lock:
            gone = [process for process in ended if self._started.pop(process, None) is not None]
            for process in gone:
                self._keys.pop(process, None)
        for process in gone:
            for gauge in self._gauges.values():  # a gauge keeps what was set last
                gauge.set(0, _tags(asdict(process)))

    def _publish(self) -> None:
        from ray.util.metrics import Gauge

        self._gauges = {name: Gauge(name, text, TAGS) for name, text in GAUGES.items()}
        for _ in _periods():
            for process in self.measured():
                tags = _tags(process)
                self._gauges["tightship_booked_bytes"].set(process["booked_bytes"], tags)
                self._gauges["tightship_pss_bytes"].set(process["pss_bytes"], tags)


def _is_alive(process: Process, started: int) -> bool:
    try:
        return start_ticks(process.pid) == started
    except OSError:
        return False


def _tags(process: dict[str, Any]) -> dict[str, str]:
    return {name: str(process[name]) for name in TAGS}


def _periods() -> Iterator[None]:
    yield
    while True:
        time.sleep(PERIOD_S)
        yield
