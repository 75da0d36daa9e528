"""A lowered program and its plan in a file, whose weights stay in the model's own file."""

from collections.abc import Callable, Sequence
from os import PathLike

from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import library_threads
from tightship.engine.plan.placement import memory_plan
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.container import damaged
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.reconstruct import reconstruct
from tightship.engine.weights.weight_store import aligned_offsets

Weights = Callable[[object], Sequence[PackedWeight]]
"""Function that makes weights of JSON values, whose constants are in the model's own file."""


class KeptProgram(StoredModel):
    """A program as it was lowered, whose plan states what it did then.

    Its weights are made when they are first asked for.

    Attributes:
        about: JSON values that tell how the weights are made, and more of the model.
    """

    def __init__(self, path: str | PathLike[str], weights: Weights) -> None:
        """Map the file.

        Args:
            path: Path of a file that `save_kept` has written.
            weights: Makes the weights of what was said of them.

        Raises:
            FormatError: The file is damaged, stale, or made for another environment.
            OSError: It cannot be read.
        """
        self._make = weights
        self._weights: tuple[PackedWeight, ...] | None = None
        super().__init__(path)
        if self.compatibility != self.compatibility.as_here():
            raise damaged(path, "it is for another environment")

    @property
    def about(self) -> object:
        """JSON values that tell how the weights are made, and more of the model."""
        return self.steps

    def _read(self, text: object) -> None:
        super()._read(text)
        if self.copies or self.sessions or len(self.keys) != 1:
            raise MalformedError("it is not one program without weights")

    @property
    def weights(self) -> Sequence[PackedWeight]:
        """Weights of the program, in order.

        Raises:
            FormatError: The file is damaged, or a file of the model has changed.
            OSError: A file of the model cannot be opened.
        """
        if self._weights is None:
            with self._reading():
                self._weights = tuple(self._make(self.steps))
            self.weights_bytes = aligned_offsets(self._weights)[1]
        return self._weights

    def _given(self) -> Sequence[PackedWeight]:
        return self.weights

    def compiled(self, *, has_rows: bool = True) -> CompiledModel:
        """Return the program, ready to be built.

        What its steps reach was checked when it was lowered, and only this user or root can have
        changed the file since.

        Args:
            has_rows: Whether its plan has steps, tensors and weights, or totals alone.

        Raises:
            FormatError: The file is damaged, or the library chooses another implementation here.
        """
        with self._reading(), library_threads(self.compatibility.threads):
            made = reconstruct(self._container, self._description().recipes)
            stored = self._program(0, made, has_schedule=has_rows)
        placement, strategies = stored.placement, stored.strategies
        plan = memory_plan(placement, self.name, stored.runtime_bytes, dict(self._key), strategies,
                           has_rows=has_rows)  # fmt: skip
        return CompiledModel(placement, self.name, 0, self._key, plan)
