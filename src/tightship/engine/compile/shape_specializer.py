"""What makes programs of a model for input shapes that come later."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.engine.program.shape_key import Key
from tightship.graph import Shape

InputShapes = Mapping[str, tuple[int, ...]]


class ShapeSpecializer(Protocol):
    """A model for input shapes that are known only when they come; `Variants` says more."""

    @property
    def check(self) -> Callable[[MemoryPlan, InputShapes], None]:
        """Refuses a plan for some shapes that the limit of loading does not hold."""

    def prepare(self, shapes: InputShapes, packed: PackedBefore, /) -> CompiledModel:
        """The model lowered and placed for these shapes, with constants packed as they are."""

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore, /) -> CompiledModel:
        """As `prepare`, where a constant cannot be had for them."""

    def unshared(self, key: Key, own: Sequence[PackedWeight], /) -> str | None:
        """What to warn of: weights that are shared for other shapes, and not for these.

        Args:
            key: The shapes that a program was made for.
            own: Weights of all programs that the process has packed for itself.
        """

    def open_lengths(self) -> Mapping[str, tuple[bool, ...] | None]:
        """Of each input, which lengths may be others; None where any rank may be."""

    def output_shapes(self) -> Mapping[str, Shape | None]:
        """Of outputs as far as they are known; a length that may be another is no integer."""

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether these can be the shapes of the model's inputs."""
