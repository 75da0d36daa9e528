"""What runs for a subgraph: graphs one after another, and loops and choices between them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tightship.driver.nnapi.emission import Tensor
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
class LoopStage:
    """While the condition holds of the state, the body makes the next.

    Attributes:
        inputs: Operands for what the body takes: the state, then what stays as it is. The
            condition takes the same.
        outputs: Operands for as much of the last state as is read.
    """

    condition: "Routine"
    body: "Routine"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BranchStage:
    """One of two routines, which take and give the same.

    Attributes:
        condition: Operand that says which.
    """

    condition: int
    when_true: "Routine"
    when_false: "Routine"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


Stage = GraphStage | LoopStage | BranchStage


def read_by(stage: Stage) -> tuple[int, ...]:
    """Operands that a stage needs."""
    return (stage.condition, *stage.inputs) if isinstance(stage, BranchStage) else stage.inputs


@dataclass(frozen=True, slots=True)
class Routine:
    """A subgraph that can be run.

    Attributes:
        tensors: Inputs and outputs, by operand.
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
    def output_tensors(self) -> list[Tensor]:
        """What it gives, in order."""
        return [self.tensors[index] for index in self.outputs]
