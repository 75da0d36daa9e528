"""Actor that keeps a model's prepared file on its node, and books the weights once."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tightship.cluster.node_file import (
    CHUNK_BYTES,
    NodeFile,
    Source,
    find_file,
    receive_file,
)
from tightship.cluster.preparing_process import prepare_apart
from tightship.cluster.process_memory import pss_bytes
from tightship.errors import InputError


class Anchor:
    """Process of Ray that makes one model's file available to the replicas of its node.

    It maps nothing: the pages of the weights belong to the replicas, and to the kernel's cache of
    the file. If it ends, they go on, and Ray starts it again.
    """

    def __init__(self, source: Source, peers: tuple[str, ...] = ()) -> None:
        """Remember a model.

        Args:
            source: The model.
            peers: Names of anchors on other nodes, which send the file if it is missing here.
        """
        self._source = source
        self._peers = peers
        self._file: NodeFile | None = None

    def file(self) -> NodeFile:
        """Return the file, which is prepared or received if it is missing.

        Raises:
            FormatError, InputError, UnusableCacheError: The errors of `find_file` and
                `receive_file`; also no node has the model.
        """
        if self._file is None or not Path(self._file.path).exists():
            self._file = find_file(self._source, prepare_apart) or self._received()
        return self._file

    def digest(self) -> str:
        """Return the SHA-256 of the file, in hexadecimal."""
        with Path(self.file().path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def chunk(self, start: int) -> bytes:
        """Return bytes of the file from an offset, at most `CHUNK_BYTES`."""
        with Path(self.file().path).open("rb") as file:
            return os.pread(file.fileno(), CHUNK_BYTES, start)

    def status(self) -> dict[str, int]:
        """Return the process id, and its memory in bytes."""
        return {"pid": os.getpid(), "pss_bytes": pss_bytes()}

    def _received(self) -> NodeFile:
        import ray

        reasons = [f"`{self._source.path}` is missing on this node"]
        for name in self._peers:
            try:
                peer = ray.get_actor(name)
                sent, digest = ray.get([peer.file.remote(), peer.digest.remote()])
                return receive_file(self._source, sent, digest, _chunks(peer, sent.size_bytes))
            except (ray.exceptions.RayError, ValueError) as error:
                reasons.append(str(getattr(error, "cause", error)))
        raise InputError(
            f"{'; '.join(reasons)}. Put the model in a folder that every node can read, or name it "
            "on a node that has it."
        )


def _chunks(peer: Any, size_bytes: int) -> Iterator[bytes]:  # noqa: ANN401
    import ray

    for start in range(0, size_bytes, CHUNK_BYTES):
        yield ray.get(peer.chunk.remote(start))
