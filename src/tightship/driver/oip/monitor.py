"""Monitoring of a driver from inside: samples over time and the current state, for its page.

Clients appear only by number, because any user may see the page.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from tightship import __version__
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.model_history import ModelHistory, Moment
from tightship.driver.oip.repository import Repository
from tightship.driver.oip.request_counts import added
from tightship.driver.types.snapshot import Holdings, Snapshot
from tightship.errors import TightshipError
from tightship.resource.resident import resident_bytes

PERIOD_S = 1.0
SAMPLES_MAX = 900
WATCHED_S = 10.0
"""Seconds after a request for the page in which clients are inspected."""
_CLOCK = time.CLOCK_BOOTTIME
_BOOTED_NS = time.time_ns() - time.clock_gettime_ns(_CLOCK)
"""Start of the clock of samples, which goes on evenly if the system's time is set meanwhile."""

GAUGES = {
    "resident_bytes": "Resident bytes of the process, mapped shared memory included",
    "weights_bytes": "Bytes of weights of the models that are loaded by name",
    "arena_bytes": "Bytes of arenas, which runs of all clients share",
    "region_bytes": "Bytes of named regions of shared memory",
    "region_count": "Named regions of shared memory",
    "running_count": "Runs under way, of the models of all clients",
}

Said = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory at one moment.

    Attributes:
        at_ms: Milliseconds since 1970.
        resident_bytes: Resident memory of the process, mapped shared memory included.
        region_bytes: Size of all named regions.
    """

    at_ms: int
    resident_bytes: int
    weights_bytes: int
    arena_bytes: int
    region_bytes: int


class Monitor:
    """Samples a driver on a thread of its own. Other methods may be called from any thread."""

    def __init__(self, endpoint: InferenceEndpoint, inspect: Callable[[], Snapshot]) -> None:
        """Watch an endpoint's models and regions, and the clients in snapshots of `inspect`."""
        self._endpoint = endpoint
        self._inspect = inspect
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._history = ModelHistory()
        self._clients: list[Said] = []
        self._asked_s = -WATCHED_S
        self._started_ms = _now_ms()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tightship-monitor")

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after a sample under way."""
        self._ended.set()
        self._thread.join()

    def status(self, since_ms: float = 0) -> Said:
        """Return the contents of the page as a JSON value; amounts in bytes.

        Args:
            since_ms: Time, in milliseconds since 1970, after which samples are wanted.
        """
        self._asked_s = time.monotonic()
        samples = [each for each in tuple(self._samples) if each.at_ms > since_ms]
        return {
            "version": __version__,
            "pid": os.getpid(),
            "started_ms": self._started_ms,
            "now_ms": _now_ms(),
            "is_draining": self._endpoint.is_draining,
            "samples": [
                [each.at_ms, each.resident_bytes, each.weights_bytes, each.arena_bytes]
                for each in samples
            ],
            "models": self._models(),
            "histories": self._history.since(since_ms),
            "regions": [
                {"name": region.name, "size_bytes": region.size_bytes}
                for region in self._endpoint.regions.status(None)
            ],
            "clients": self._clients,
        }

    def metrics(self) -> str:
        """Return the gauges for Prometheus; empty before the first sample."""
        if not self._samples:
            return ""
        last = asdict(self._samples[-1])
        last["region_count"] = len(self._endpoint.regions.status(None))
        last["running_count"] = self._endpoint.permits.taken_count
        lines = []
        for name, text in GAUGES.items():
            metric = f"tightship_{name}"
            lines += [f"# HELP {metric} {text}", f"# TYPE {metric} gauge", f"{metric} {last[name]}"]
        return "\n".join(lines) + "\n"

    def _models(self) -> list[Said]:
        repository = self._endpoint.repository
        sizes = _sizes(self._endpoint)
        found = []
        for each in repository.index():
            label = repository.label(each["name"], each["version"])
            found.append(
                {
                    "name": label,
                    "state": each["state"].lower(),
                    "reason": each.get("reason", ""),
                    **_counted(repository, each["name"], each["version"]),
                    **sizes.get(label, {}),
                }
            )
        return found

    def _watch(self) -> None:
        while not self._ended.is_set():
            with suppress(OSError, MemoryError):  # too little is left to read `/proc`
                self._sample()
            if time.monotonic() - self._asked_s < WATCHED_S:
                self._clients = self._ask()
            self._ended.wait(PERIOD_S)

    def _sample(self) -> None:
        """Add a sample of the process, and one of each model.

        Raises:
            OSError: `/proc` cannot be read.
        """
        sample = _sample(self._endpoint)
        self._samples.append(sample)
        self._history.add(sample.at_ms, _moments(self._endpoint.repository))

    def _ask(self) -> list[Said]:
        """Return the holdings of the socket's clients except this process."""
        try:
            snapshot = self._inspect()
        except (TightshipError, OSError, MemoryError):
            return []  # the server ends or lacks something; the page shows the rest
        own = os.getpid()
        return [_holdings(each) for each in snapshot.clients if each.caller.pid != own]


def _sample(endpoint: InferenceEndpoint) -> Sample:
    sizes = _sizes(endpoint).values()
    regions = endpoint.regions.status(None)
    return Sample(
        _now_ms(),
        resident_bytes(),
        sum(each["weights_bytes"] for each in sizes),
        endpoint.repository.arenas.held_bytes,
        sum(region.size_bytes for region in regions),
    )


def _sizes(endpoint: InferenceEndpoint) -> Mapping[str, dict[str, int]]:
    repository = endpoint.repository
    held = repository.hold_all()
    try:
        return {
            name: {
                "weights_bytes": model.memory_stats().weights_bytes,
                "run_bytes": model.plan.arena_bytes,
            }
            for name, model in held.items()
        }
    finally:
        for model in held.values():
            repository.release(model)


def _moments(repository: Repository) -> dict[str, Moment]:
    """Return the counts of the models that are served, by their labels."""
    found = {}
    held = repository.hold_all()
    try:
        for name in repository.ready_names:
            for version in repository.served_versions(name):
                label = repository.label(name, version)
                model = held.get(label)
                if model is None or model.is_closed:
                    continue  # it has come or gone just now
                counts = added(
                    repository.counts(name, version), repository.native_counts(name, version)
                )
                stats, plan = model.memory_stats(), model.plan
                found[label] = Moment(
                    counts.success_count + counts.fail_count,
                    counts.success_count,
                    counts.run_count,
                    counts.pending_count,
                    stats.weights_bytes + stats.program_bytes,
                    plan.weights_bytes + plan.runtime_bytes,
                )
    finally:
        for each in held.values():
            repository.release(each)
    return found


def _counted(repository: Repository, name: str, version: str) -> Said:
    """Return the requests of protocol and native clients together, and native runs alone."""
    native = repository.native_counts(name, version)
    counts = added(repository.counts(name, version), native)
    count = counts.success_count
    return {
        "native_count": native.success_count,
        "success_count": count,
        "fail_count": counts.fail_count,
        "pending_count": counts.pending_count,
        "mean_us": counts.success_ns // count // 1000 if count else None,
    }


def _holdings(client: Holdings) -> Said:
    return {
        "number": client.caller.connection,
        "is_connected": client.is_connected,
        "pools": [
            {
                "kind": pool.kind,
                "mode": pool.mode,
                "size_bytes": pool.size_bytes,
                "resident_bytes": pool.pss_bytes,
            }
            for pool in client.pools
        ],
        "buffers": [
            {"size_bytes": buffer.size_bytes, "is_filled": buffer.is_filled}
            for buffer in client.buffers
        ],
        "models": [
            {"weights_bytes": model.weights_bytes, "arena_bytes": model.arena_bytes}
            for model in client.models
        ],
    }


def _now_ms() -> int:
    """Return milliseconds since 1970, as the system's time was when the process started."""
    return (_BOOTED_NS + time.clock_gettime_ns(_CLOCK)) // 1_000_000
