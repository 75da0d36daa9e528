"""What runs for a subgraph: graphs one after another, and loops and choices between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.types.dimensions import Dimensions
from tightship.graph import Constant, Graph


@dataclass(frozen=True, slots=True)
class GraphStage:
    """Operations that follow each other.

    Attributes:
        inputs, outputs: Operands that the graph takes and gives, in its order.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LateRoutine:
    """A subgraph, or the rest of one, whose inputs have dimensions that only a run knows.

    Attributes:
        key: The same for the same operations of a model, wherever they are met.
        places: Of what it is given, those that it reads: its inputs, in order.
        declared: Dimensions of its inputs, as far as the model says.
        translate: What runs for inputs of these dimensions, by their number.
    """

    key: tuple[int, int]
    places: tuple[int, ...]
    declared: tuple[Dimensions, ...]
    translate: Callable[[Mapping[int, Dimensions]], "Routine"]


@dataclass(frozen=True, slots=True)
class LateStage:
    """The operations after a loop or a branch whose outputs have dimensions that only a run knows.

    Attributes:
        inputs, outputs: Operands that they take and give, in order.
    """

    rest: LateRoutine
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopStage:
    """While the condition holds of the state, the body makes the next.

    Attributes:
        condition, body: Late where the state changes its dimensions.
        inputs: Operands for what the body takes: the state, then what stays as it is. The
            condition takes the same.
        outputs: Operands for as much of the last state as is read.
        declared: Dimensions of the outputs, as far as the model says.
    """

    condition: "Routine | LateRoutine"
    body: "Routine | LateRoutine"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    declared: tuple[Dimensions, ...]


@dataclass(frozen=True, slots=True)
class BranchStage:
    """One of two routines, which take and give the same.

    Attributes:
        condition: Operand that says which.
        declared: Dimensions of the outputs, as far as the model says.
    """

    condition: int
    when_true: "Routine"
    when_false: "Routine"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    declared: tuple[Dimensions, ...]


Stage = GraphStage | LoopStage | BranchStage | LateStage


def read_by(stage: Stage) -> tuple[int, ...]:
    """Operands that a stage needs."""
    return (stage.condition, *stage.inputs) if isinstance(stage, BranchStage) else stage.inputs


@dataclass(frozen=True, slots=True)
class Routine:
    """A subgraph that can be run.

    Attributes:
        tensors: Inputs and outputs, by operand; outputs of unknown dimensions are missing.
        constants: Constant operands that loops and branches are given.
    """

    stages: tuple[Stage, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tensors: Mapping[int, Tensor]
    constants: Mapping[int, Constant]

    @property
    def input_tensors(self) -> list[Tensor]:
        """What it takes, in order."""
        return [self.tensors[index] for index in self.inputs]

    @property
    def output_shapes(self) -> list[tuple[int, ...] | None]:
        """Shapes of what it gives, in order; None where only a run knows it."""
        found = [self.tensors.get(index) for index in self.outputs]
        return [None if each is None else each.shape for each in found]
