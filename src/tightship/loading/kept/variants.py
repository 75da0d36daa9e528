"""A model whose programs are kept: its file is read when one is wanted that is not."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import Key
from tightship.engine.compile.shape_specializer import GraphSource, InputShapes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.errors import InputError
from tightship.graph import Shape, agrees
from tightship.loading.kept.programs import KeptPrograms, Shapes

if TYPE_CHECKING:
    from tightship.engine.template.variants import Variants
    from tightship.graph import Graph


@dataclass(slots=True)
class LateVariants:
    """Compiler of a model for further shapes, as `Variants`, whose file may not have been read.

    Attributes:
        kept: Programs that are kept.
        settings: Settings that programs depend on.
        inputs: Shapes of the inputs as the file declares them.
        outputs: Shapes of the outputs as far as they are known for all input shapes.
        bounds: Limits of the model's memory.
        read: Reads the file.
    """

    kept: KeptPrograms
    settings: Settings
    inputs: Shapes
    outputs: Shapes
    bounds: Bounds
    read: "Callable[[], Variants]"
    _variants: "Variants | None" = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def check(self, plan: MemoryPlan, shapes: InputShapes) -> None:
        """Check a plan for some shapes against the limit of loading.

        Raises:
            CapacityError: The plan exceeds it.
        """
        if self.bounds.limit_bytes is not None:
            from tightship.loading.budget import check_shapes  # few models have a limit

            check_shapes(plan, shapes, self.bounds.limit_bytes, self.bounds.dynamic_bytes)

    def prepare(self, shapes: InputShapes, packed: PackedBefore) -> CompiledModel:
        """Return the program for these shapes, as `Variants.prepare` does."""
        return self._opened().prepare(shapes, packed)

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore) -> CompiledModel:
        """Prepare without the template, as `Variants.prepare_anew` does."""
        return self._opened().prepare_anew(shapes, packed)

    def unshared(self, _key: Key, _own: Sequence[PackedWeight]) -> None:
        """Return None, because all weights belong to the process."""

    def open_lengths(self) -> dict[str, tuple[bool, ...] | None]:
        """Tell which lengths of each input the file leaves open; None for any rank."""
        return {
            name: None if shape is None else tuple(not isinstance(each, int) for each in shape)
            for name, shape in self.inputs.items()
        }

    def output_shapes(self) -> Mapping[str, Shape | None]:
        """Return output shapes as far as they are known for all input shapes."""
        return self.outputs

    def source(self) -> GraphSource:
        """Return the source of the model's graphs, and the programs that are kept of them."""
        return GraphSource(self._graph, self.inputs, self.settings, kept=self.kept)

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether each shape has the rank and the fixed lengths that the file declares."""
        return all(agrees(shape, self.inputs.get(name)) for name, shape in shapes)

    def _graph(self, shapes: InputShapes) -> "Graph":
        return self._opened().read(shapes)

    def _opened(self) -> "Variants":
        """Return what reads the file.

        Raises:
            InputError: The file has changed since the model was loaded.
        """
        with self._lock:
            if self._variants is None:
                if not self.kept.is_current():
                    raise InputError(
                        f"`{self.kept.model}` has changed since it was loaded; load it again."
                    )
                self._variants = self.read()
            return self._variants
