"""Protocol of what makes programs of a model for further input shapes."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import Key
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.engine.weights.weight_store import PackedCopy
from tightship.graph import Shape

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import Declared, Settings
    from tightship.graph import Graph

InputShapes = Mapping[str, tuple[int, ...]]


class ProgramKeeper(Protocol):
    """Programs that are kept for later processes."""

    def program(
        self,
        facts: Mapping[str, str],
        make: Callable[[], CompiledModel],
        note: Callable[[CompiledModel], object],
        /,
    ) -> CompiledModel:
        """Return the program that depends on these facts; `make` makes it if it is not kept.

        `note` returns what is noted of it then, as JSON values.
        """

    def noted(self, facts: Mapping[str, str], /) -> object:
        """Return what is noted of a program; None if it is not kept."""

    def holds(self, facts: Mapping[str, str], /) -> bool:
        """Whether the program of some facts is kept."""

    def make_apart(self, choices: object, name: str, counts: Sequence[int], /) -> None:
        """Have another process make and keep programs, so that this one needs not.

        Args:
            choices: Choices of the sessions that the programs are for.
            name: What is counted, tokens or sessions.
            counts: Numbers of them.
        """


class GraphSource(NamedTuple):
    """Source of a model's graphs.

    Attributes:
        read: Function that returns the graph for shapes of all inputs.
        declared: Input shapes as the file declares them.
        settings: Settings that programs depend on besides shapes, for one worker.
        packed: Weights of these graphs that are packed already, as a prepared file has them.
        kept: Programs of these graphs that are kept; None if none are.
    """

    read: "Callable[[InputShapes], Graph]"
    declared: "Declared"
    settings: "Settings"
    packed: tuple[PackedCopy, ...] = ()
    kept: ProgramKeeper | None = None


class ShapeSpecializer(Protocol):
    """Compiler of a model for input shapes that only arrive with a run; see `Variants`."""

    @property
    def check(self) -> Callable[[MemoryPlan, InputShapes], None]:
        """Function that raises if a plan for some shapes exceeds the limit of loading."""

    def prepare(self, shapes: InputShapes, packed: PackedBefore, /) -> CompiledModel:
        """Lower and place the model for these shapes, reusing constants packed already."""

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore, /) -> CompiledModel:
        """Prepare without the template, which cannot produce a constant for these shapes."""

    def unshared(self, key: Key, own: Sequence[PackedWeight], /) -> str | None:
        """Word a warning about weights that other shapes share and these do not, if there are any.

        Args:
            key: Shapes that a program was made for.
            own: Weights of all programs that this process packed for itself.
        """

    def open_lengths(self) -> Mapping[str, tuple[bool, ...] | None]:
        """Tell which lengths of each input are symbolic; None if its rank is open too."""

    def output_shapes(self) -> Mapping[str, Shape | None]:
        """Return the shapes of outputs as far as known; a symbolic length is not an integer."""

    def source(self) -> GraphSource:
        """Return the source of the model's graphs."""

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether these can be the shapes of the model's inputs."""
