"""Makes a planned step ready to run in a block: its kernels, and addresses of its operands."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship._core import HostResource
from tightship.engine.plan.placement import Placement
from tightship.engine.program.program import Operand
from tightship.engine.run.arena import Arena
from tightship.engine.run.executable import build
from tightship.engine.weights.weight_store import WeightStore
from tightship.model import feeds
from tightship.training.block import Block
from tightship.training.step_graph import StepGraph

Array = NDArray[Any]


class Program:
    """One of a trainer's programs; programs that share a block run one after another.

    Attributes:
        executable: Its compiled kernels.
        arena: Memory of its operands other than inputs and outputs.
        inputs: Inputs that the caller provides.
        loss: Array that receives the loss.
        norm: Array that receives the norm of the gradients; None if the step has none.
    """

    def __init__(
        self, step: StepGraph, placement: Placement, block: Block, scalars: Mapping[str, Array]
    ) -> None:
        """Compile the program.

        Args:
            step: The step to run.
            placement: Offsets of its operands.
            block: Memory of the tensors that stay, and of the arena.
            scalars: Inputs that the trainer sets for each run, such as the learning rate.
        """
        lowered = placement.lowered
        self.executable = build(placement, WeightStore(HostResource()))
        self.arena = Arena(self.executable, block.arena)
        outputs = lowered.outputs
        shown = {n: np.zeros(outputs[n].shape, outputs[n].dtype.numpy) for n in step.shown}
        self.loss, self.norm = shown[step.loss], shown.get(step.norm)
        own = {**block.tensors, **scalars}
        self._external = {lowered.outputs[name].slot: array for name, array in shown.items()}
        self._external |= {
            operand.slot: own[name] for name, operand in lowered.inputs.items() if name in own
        }
        for after in step.follows:
            self._external[lowered.outputs[after].slot] = own[step.followed(after)]
        self.inputs: dict[str, Operand] = {
            name: operand for name, operand in lowered.inputs.items() if name not in own
        }

    def bound(self, inputs: Mapping[str, ArrayLike]) -> dict[int, Array]:
        """Return arrays by slot, the caller's inputs included.

        Raises:
            InputError: A name, dtype or shape does not fit.
        """
        return self._external | feeds.bind_inputs(self.inputs, inputs)
