"""Executable form of a subgraph: a sequence of graphs, loops and branches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.types.dimensions import Dimensions
from tightship.graph import Constant, Graph


@dataclass(frozen=True, slots=True)
class GraphStage:
    """Consecutive operations as one graph.

    Attributes:
        inputs, outputs: Operands of the graph's inputs and outputs, in its order.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeferredRoutine:
    """Subgraph, or the rest of one, translated when a run knows the dimensions of its inputs.

    Attributes:
        key: Identifies the operations within the model.
        places: Positions of the arguments that it reads: its inputs, in order.
        declared: Dimensions of its inputs as declared, partly unknown.
        translate: Returns the routine for inputs of these dimensions, by position.
    """

    key: tuple[int, int]
    places: tuple[int, ...]
    declared: tuple[Dimensions, ...]
    translate: Callable[[Mapping[int, Dimensions]], "Routine"]


@dataclass(frozen=True, slots=True)
class DeferredStage:
    """Operations after a loop or branch whose output dimensions only a run determines.

    Attributes:
        inputs, outputs: Operands that they read and write, in order.
    """

    rest: DeferredRoutine
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopStage:
    """Loop whose body computes the next state while the condition holds.

    Attributes:
        condition, body: Deferred if the state changes its dimensions.
        inputs: Operands of the first state, then of loop invariants; condition and body take both.
        outputs: Operands of the leading values of the last state.
        declared: Dimensions of the outputs as declared, partly unknown.
    """

    condition: "Routine | DeferredRoutine"
    body: "Routine | DeferredRoutine"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    declared: tuple[Dimensions, ...]


@dataclass(frozen=True, slots=True)
class BranchStage:
    """Choice between two routines with the same inputs and outputs.

    Attributes:
        condition: Operand that chooses.
        declared: Dimensions of the outputs as declared, partly unknown.
    """

    condition: int
    when_true: "Routine"
    when_false: "Routine"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    declared: tuple[Dimensions, ...]


Stage = GraphStage | LoopStage | BranchStage | DeferredStage


def read_by(stage: Stage) -> tuple[int, ...]:
    """Return the operands that a stage reads."""
    return (stage.condition, *stage.inputs) if isinstance(stage, BranchStage) else stage.inputs


@dataclass(frozen=True, slots=True)
class Routine:
    """Subgraph that can be run.

    Attributes:
        tensors: Inputs and outputs by operand, without outputs of unknown dimensions.
        constants: Constant operands of loops and branches.
    """

    stages: tuple[Stage, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tensors: Mapping[int, Tensor]
    constants: Mapping[int, Constant]

    @property
    def input_tensors(self) -> list[Tensor]:
        """Inputs in order."""
        return [self.tensors[index] for index in self.inputs]

    @property
    def output_shapes(self) -> list[tuple[int, ...] | None]:
        """Shapes of the outputs, in order; None where only a run determines them."""
        found = [self.tensors.get(index) for index in self.outputs]
        return [None if each is None else each.shape for each in found]
