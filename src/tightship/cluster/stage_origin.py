"""Identifies the model that stages are part of, and compiles it again the same."""

from dataclasses import dataclass
from os import PathLike, fspath, stat

from tightship.cluster.replica_memory import Shapes
from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library
from tightship.engine.stored.container import holds_prepared
from tightship.errors import InputError


@dataclass(frozen=True, slots=True)
class Origin:
    """Model with all that its program depends on besides the processor.

    Attributes:
        model: Path of the ONNX file, its bytes, or a program of torch or jax.
        shapes: Shapes for inputs whose dimensions are symbolic.
        threads: Threads of each kernel.
        stamp: Inode, size and time of change of the file; None if it is not a file.
    """

    model: ModelSource
    shapes: Shapes | None
    threads: int
    stamp: tuple[int, ...] | None

    @classmethod
    def of(cls, model: ModelSource, shapes: Shapes | None, threads: int) -> "Origin":
        """Note a model as it is now.

        Raises:
            InputError: It is prepared.
            OSError: Its file cannot be read.
        """
        if holds_prepared(model):
            raise InputError(f"`{name_of(model)}` is prepared; give the ONNX file to cut it.")
        return cls(model, shapes, threads, _stamp(model))

    @property
    def path(self) -> str:
        """Path of the file.

        Raises:
            InputError: The model is not a file, so that other nodes cannot find it.
        """
        if not isinstance(self.model, str | PathLike):
            raise InputError(
                f"A model of a cluster is a path that its nodes can read, not "
                f"{type(self.model).__name__}; split the file itself."
            )
        return fspath(self.model)

    def check_unchanged(self) -> None:
        """Check that the file is the one that was split.

        Raises:
            InputError: It is missing, or was replaced or written since.
        """
        try:
            is_same = _stamp(self.model) == self.stamp
        except OSError:
            is_same = False
        if not is_same:
            raise InputError(
                f"`{name_of(self.model)}` has changed since it was split, or is gone; split it "
                "again."
            )


def compiled(origin: Origin) -> CompiledModel:
    """Compile a model for its shapes; errors as `tightship.plan`."""
    from tightship.loading.opening import anew, open_for

    open_library()
    source, settings = open_for(origin.model, Settings(origin.shapes, origin.threads))
    return anew(source, name_of(origin.model), settings)


def _stamp(model: ModelSource) -> tuple[int, ...] | None:
    if not isinstance(model, str | PathLike):
        return None
    found = stat(model)
    return found.st_ino, found.st_size, found.st_mtime_ns
