"""Actor that keeps prepared files of models on its node, and books their weights once."""

import hashlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tightship.cluster.booked_nodes import Bundle, granted
from tightship.cluster.node_file import (
    CHUNK_BYTES,
    NodeFile,
    Source,
    find_file,
    receive_file,
)
from tightship.cluster.node_processes import NodeProcesses, Process
from tightship.cluster.preparing_process import prepare_apart
from tightship.cluster.process_memory import pss_bytes, return_blocks
from tightship.cluster.ray_state import alive_nodes, booked_bytes
from tightship.cluster.weights_bookings import (
    NAMESPACE,
    Holding,
    anchor_name,
    anchored_nodes,
    needs_on,
    release,
    release_of_lost_nodes,
    weights_name,
    weights_on,
)
from tightship.errors import InputError

CHECK_S = 2.0
"""Seconds between two checks of what is still needed."""
UNUSED_S = 20.0
"""Seconds that an anchor has until something of it is used."""


class Anchor:
    """Process of Ray that makes models available to the replicas of its node, of all jobs.

    It books their weights, each once, and ends when no replica needs it. It maps nothing: the pages
    of the weights belong to the replicas, and to the kernel's cache of the file. If it is lost, the
    replicas go on, and Ray starts it again.
    """

    def __init__(self) -> None:
        """Take over the bookings that an anchor of this node has left."""
        import ray

        return_blocks()  # each thread would keep the chunk that it has sent
        context = ray.get_runtime_context()
        self._node: str = context.get_node_id()
        self._self = context.current_actor
        self._files: dict[str, NodeFile] = {}
        self._names: dict[str, str] = {}
        self._finding: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._held: dict[str, str | None] = dict(weights_on().get(self._node, {}))
        self._holding, self._receiving = threading.Lock(), threading.Lock()
        self._holds = 0
        self._used_until = time.monotonic() + UNUSED_S
        self._processes = NodeProcesses()
        self._processes.register(Process("anchor", os.getpid(), "", booked_bytes()))
        threading.Thread(target=self._watch, name="tightship-needs", daemon=True).start()

    def hold(self, holdings: Sequence[Holding]) -> None:
        """Book weights, of which those that are booked already count no second time.

        Raises:
            CapacityError: The node has no room for them.
        """
        with self._holding:
            self._holds += 1
            self._used_until = time.monotonic() + UNUSED_S
            for holding in holdings:
                self._names[holding.source.key] = Path(holding.source.path).name
                if holding.source.key not in self._held:
                    self._held[holding.source.key] = self._booked(holding)

    def file(self, source: Source) -> NodeFile:
        """Return the file of a model, which is prepared or received if it is missing.

        Raises:
            FormatError, InputError, UnusableCacheError: The errors of `find_file` and
                `receive_file`; also no node has the model.
        """
        return self._own_file(source) or self._received(source)

    def held_file(self, source: Source) -> NodeFile | None:
        """Return the file of a model whose weights are booked here, for another node.

        Returns:
            None if they are not, or if this node lacks the model too.

        Raises:
            FormatError, InputError, UnusableCacheError: The errors of `find_file`.
        """
        return self._own_file(source) if source.key in self._held else None

    def digest(self, source: Source) -> str:
        """Return the SHA-256 of a file, in hexadecimal."""
        with Path(self._files[source.key].path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def chunk(self, source: Source, start: int) -> bytes:
        """Return bytes of a file from an offset, at most `CHUNK_BYTES`."""
        with Path(self._files[source.key].path).open("rb") as file:
            return os.pread(file.fileno(), CHUNK_BYTES, start)

    def register(self, process: Process, keys: Sequence[str] = ()) -> None:
        """Remember a replica of this node and the weights that it needs; may be repeated."""
        self._processes.register(process, keys)

    def processes(self) -> list[dict[str, Any]]:
        """Return this process and the replicas that are alive, with what each takes now."""
        held = sorted({name for key, name in self._names.items() if key in self._held})
        return [
            {**each, "model": ", ".join(held)} if each["kind"] == "anchor" else each
            for each in self._processes.measured()
        ]

    def located(self) -> tuple[str, list[dict[str, Any]]]:
        """Return the id of this node, and `processes`."""
        return self._node, self.processes()

    def status(self) -> dict[str, Any]:
        """Return the process id, its memory in bytes, and the keys of the weights it has booked."""
        return {"pid": os.getpid(), "pss_bytes": pss_bytes(), "keys": sorted(self._held)}

    def check(self) -> None:
        """Release the weights that nothing needs, and end this process if it has none left."""
        holds, needs = self._holds, needs_on(self._node)
        with self._holding:
            if self._holds != holds or not needs.is_certain:
                return  # what was asked for meanwhile is not known to be needed yet
            needed = needs.keys | self._processes.keys()
            for key in [key for key in self._held if key not in needed]:
                group = self._held.pop(key)
                if group is not None:
                    release(group)
                self._used_until = 0.0
            is_used = needs.is_used or self._held or self._processes.has_others()
            if is_used:
                self._used_until = time.monotonic()
            elif time.monotonic() > self._used_until:
                self._end()

    def _watch(self) -> None:
        import ray

        while True:
            time.sleep(CHECK_S)
            try:
                self.check()
                release_of_lost_nodes()
            except (ray.exceptions.RayError, RuntimeError, OSError):
                continue  # Ray's control plane is away; the next check asks again

    def _end(self) -> None:
        import ray

        ray.kill(self._self)

    def _booked(self, holding: Holding) -> str | None:
        """Return the id of a booking; None of weights without bytes, which need none."""
        if not holding.weights_bytes:
            return None
        (node,) = [each for each in alive_nodes() if each.node_id == self._node]
        name = weights_name(self._node, holding.source.key)
        bundle = Bundle(node, holding.weights_bytes, 0)
        group = granted([bundle], Path(holding.source.path).name, name, lifetime="detached")
        found: str = group.id.hex()
        return found

    def _own_file(self, source: Source) -> NodeFile | None:
        with self._finding[source.key]:
            kept = self._files.get(source.key)
            if kept is None or not Path(kept.path).exists():
                kept = find_file(source, prepare_apart)
                if kept is not None:
                    self._files[source.key] = kept
            return kept

    def _received(self, source: Source) -> NodeFile:
        import ray

        reasons = [f"`{source.path}` is missing on this node"]
        with self._receiving:
            for node in sorted(anchored_nodes() - {self._node}):
                try:
                    peer = ray.get_actor(anchor_name(node), NAMESPACE)
                    sent = ray.get(peer.held_file.remote(source))
                    if sent is None:
                        continue
                    digest = ray.get(peer.digest.remote(source))
                    found = receive_file(source, sent, digest, _chunks(peer, source, sent))
                except (ray.exceptions.RayError, ValueError) as error:
                    reasons.append(str(getattr(error, "cause", error)))
                    continue
                self._files[source.key] = found
                return found
        raise InputError(
            f"{'; '.join(reasons)}. Put the model in a folder that every node can read, or name it "
            "on a node that has it."
        )


def _chunks(peer: Any, source: Source, sent: NodeFile) -> Iterator[bytes]:  # noqa: ANN401
    import ray

    for start in range(0, sent.size_bytes, CHUNK_BYTES):
        yield ray.get(peer.chunk.remote(source, start))
