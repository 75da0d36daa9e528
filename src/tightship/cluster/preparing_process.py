"""Prepares a model in a process of its own, whose memory ends with it.

The reader and the packing of a model take memory that an anchor must not keep.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tightship.loading.reading_process import ReadingProcess

if TYPE_CHECKING:
    from tightship.cluster.node_file import Source
    from tightship.cluster.replica_memory import Shapes


def prepare_apart(source: "Source", path: Path) -> None:
    """Prepare a model into a file, in another process.

    Raises:
        TightshipError: The error of `tightship.prepare`.
        OSError: The file cannot be written, or the process ended without a result.
    """
    with ReadingProcess() as process:
        process.call(_prepare, source.path, str(path), source.shapes, source.threads)


def _prepare(model: str, path: str, shapes: "Shapes | None", threads: int) -> None:
    from tightship.loading.preparing import prepare

    prepare(model, path, shapes=shapes, threads=threads)
