"""A real cluster of Ray on this machine: nodes of given memory, each with a cache of its own."""

import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cluster.serve_clients import until

LOCK = Path(tempfile.gettempdir()) / f"tightship-ray-tests-{os.getuid()}.lock"
MIB = 1 << 20
STORE_BYTES = 80 * MIB
ENDING_S = 20
STARTS = 3
"""Attempts to start a cluster: on a busy machine Ray gives a node up after 30 seconds."""
SETTINGS = {
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 6,
    "worker_niceness": 0,
    "prestart_worker_first_driver": False,
    "metrics_report_interval_ms": 1000,
}
"""Settings by which a node counts as lost after some seconds, and workers run beside other tests.

By default Ray leaves the processors to all other processes, such as a second worker of pytest,
starts as many workers as the first node has processors, and sends metrics every ten seconds."""


@contextmanager
def cluster_of(*memory_mib: int, cpus: int = 8) -> Iterator["LocalCluster"]:
    """Start nodes and connect to them; nothing of it is left behind the block.

    One cluster of this user is there at a time, however many processes run tests: workers of
    another would share pages with those that are measured.
    """
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(tempfile.mkdtemp(prefix="tsray", dir="/tmp"))
        before = segments()
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("RAY_TMPDIR", str(folder))  # its own file of addresses is there too
                found = started(folder, cpus, memory_mib)
                try:
                    yield found
                finally:
                    found.stop()
            assert found.processes() == []
            assert segments() - before == set()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def started(folder: Path, cpus: int, memory_mib: tuple[int, ...]) -> "LocalCluster":
    """Start a cluster, or end what a failed attempt has left and start another."""
    for attempt in range(STARTS):
        found = LocalCluster(folder / str(attempt), cpus)
        try:
            found.start(memory_mib)
        except Exception:  # Ray raises nothing narrower
            found.stop()
            found.end_processes()
            if attempt == STARTS - 1:
                raise
        else:
            break
    return found


def segments() -> set[str]:
    """Names of Ray's shared memory."""
    return {name for name in os.listdir("/dev/shm") if "plasma" in name or "ray" in name}


class LocalCluster:
    """Nodes on this machine, in the order of their start; the first is the head."""

    def __init__(self, folder: Path, cpus: int) -> None:
        from ray.cluster_utils import Cluster

        (folder.parent / "ray").mkdir(exist_ok=True)
        folder.mkdir()
        self.folder = folder
        self.nodes = []
        self._cpus = cpus
        self._cluster = Cluster()

    def start(self, memory_mib) -> None:
        import ray

        for size in memory_mib:
            self.add(size)
        ray.init(address=self._cluster.address, log_to_driver=False, logging_level="error")
        self._cluster.wait_for_nodes()

    def add(self, size_mib: int, cpus: int | None = None, **environment: str):
        """Start a node whose models are cached in a folder of its own, with further variables."""
        cache = self.folder / f"cache{len(self.nodes)}"
        first = {"include_dashboard": False, "_system_config": SETTINGS}
        head = {} if self.nodes else first
        node = self._cluster.add_node(
            num_cpus=cpus or self._cpus,
            memory=size_mib * MIB,
            object_store_memory=STORE_BYTES,
            env_vars={**os.environ, "TIGHTSHIP_CACHE_DIR": str(cache), **environment},
            **head,
        )
        self.nodes.append(node)
        return node

    @contextmanager
    def leaving(self, *free_mib: int) -> Iterator[list[str]]:
        """Book memory as others do; the first nodes then have so many MiB free.

        Yields:
            Ids of these nodes, on which nothing else may be booked before.
        """
        from ray.util.placement_group import remove_placement_group

        from tightship.cluster.booked_nodes import Bundle, granted
        from tightship.cluster.ray_state import alive_nodes

        known = {node.node_id: node for node in alive_nodes()}
        wanted = {
            node.node_id: size * MIB for node, size in zip(self.nodes, free_mib, strict=False)
        }
        bundles = [
            Bundle(known[name], known[name].memory_bytes - size, 0) for name, size in wanted.items()
        ]
        others = granted([each for each in bundles if each.memory_bytes], "others")

        def is_booked() -> bool:
            free = {node.node_id: node.free_bytes for node in alive_nodes()}
            return all(free[name] == size for name, size in wanted.items())

        try:
            until(is_booked)  # the head hears of bookings some moments later
            yield list(wanted)
        finally:
            remove_placement_group(others)

    def kill(self, node) -> None:
        """End a node as a failing machine does."""
        self._cluster.remove_node(node, allow_graceful=False)

    @property
    def address(self) -> str:
        return self._cluster.address

    def stop(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()

    def processes(self) -> list[str]:
        """Command lines of processes of this cluster that are still alive some time later."""
        end = time.monotonic() + ENDING_S
        while (left := [text for _, text in self._alive()]) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def end_processes(self) -> None:
        """Kill what a failed start has left."""
        for number, _ in self._alive():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def _alive(self) -> Iterator[tuple[int, str]]:
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in text:
                yield int(entry.name), text[:200].replace(b"\0", b" ").decode(errors="replace")
