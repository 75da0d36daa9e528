"""Runs ONNX Runtime for comparison: by default, and with settings that share weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tightship.cli.workers import worker_alone
from tightship.errors import InputError

RUNTIME = "onnxruntime"
WEIGHTS_MIN_BYTES = 1024
"""Size below which weights stay in the model's own file, in bytes."""

_EXTERNAL = "session.optimized_model_external_initializers_"
_PREPACKED = ("session.save_external_prepacked_constant_initializers", "1")
_NO_PREPACKING = ("session.disable_prepacking", "1")

Entries = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Contender:
    """A file, with the runtime and settings that load it.

    Attributes:
        title: Name in tables.
        runtime: Name of the runtime.
        model: The file.
        entries: Session settings of ONNX Runtime.
        is_optimized: Whether ONNX Runtime wrote the file.
    """

    title: str
    runtime: str
    model: Path
    entries: Entries = ()
    is_optimized: bool = False

    def job(self, threads: int) -> dict[str, Any]:
        """Return the job that makes a worker load the file."""
        return {
            "runtime": self.runtime,
            "model": str(self.model),
            "threads": threads,
            "entries": list(self.entries),
            "is_optimized": self.is_optimized,
        }


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to use ONNX Runtime.

    Attributes:
        title: Name in tables.
        saving: Settings with which ONNX Runtime writes the model first; None loads the file as it
            is.
        loading: Settings with which the model is loaded.
    """

    title: str
    saving: Entries | None
    loading: Entries = ()


PEERS = (
    Peer("ONNX Runtime, default", None),
    Peer("ONNX Runtime, weights in a file, unpacked", (), (_NO_PREPACKING,)),
    Peer("ONNX Runtime, its prepacked file", (_PREPACKED,)),
)


def peers(*, wanted: bool | None) -> Sequence[Peer]:
    """Return the peers to measure: if wanted, or by default if ONNX Runtime is installed.

    Raises:
        InputError: Peers are wanted, and ONNX Runtime is not installed.
    """
    is_there = find_spec(RUNTIME) is not None
    if wanted and not is_there:
        raise InputError("`--peers` needs ONNX Runtime: `pip install onnxruntime`.")
    return PEERS if is_there and wanted is not False else ()


@contextmanager
def saved(peer: Peer, model: Path, folder: Path, threads: int) -> Iterator[Contender]:
    """Make the contender of a peer, with its file, which is deleted at the end of the block.

    Raises:
        WorkerError: ONNX Runtime cannot write the file.
    """
    if peer.saving is None:
        yield Contender(peer.title, RUNTIME, model, peer.loading)
        return
    target, weights = folder / "saved.onnx", folder / "saved.bin"
    entries = (
        (f"{_EXTERNAL}file_name", weights.name),
        (f"{_EXTERNAL}min_size_in_bytes", str(WEIGHTS_MIN_BYTES)),
        *peer.saving,
    )
    job = {"model": str(model), "output": str(target), "threads": threads, "entries": entries}
    try:
        with worker_alone(f"{peer.title}, saving") as saving:
            saving.ask({"job": "save", **job})
        yield Contender(peer.title, RUNTIME, target, peer.loading, is_optimized=True)
    finally:
        target.unlink(missing_ok=True)
        weights.unlink(missing_ok=True)
