"""A planned step made ready to run over a block: its kernels, and where its operands are."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship._core import HostResource
from tightship.engine.arenas.arena import Arena
from tightship.engine.executable import build
from tightship.engine.placement import Placement
from tightship.engine.program import Operand
from tightship.engine.weight_store import WeightStore
from tightship.model import feeds
from tightship.training.block import Block
from tightship.training.step_graph import StepGraph

Array = NDArray[Any]


class Program:
    """One of a trainer's programs; those that have a block in common run one after another.

    Attributes:
        executable: Its compiled kernels.
        arena: Where its operands are between inputs and outputs.
        inputs: What a caller feeds it.
        loss: Where a run leaves the loss.
        norm: Where it leaves the norm of gradients; None where it has none.
    """

    def __init__(
        self, step: StepGraph, placement: Placement, block: Block, scalars: Mapping[str, Array]
    ) -> None:
        """Compile it.

        Args:
            step: What is run.
            placement: Where its operands are.
            block: What stays from run to run, and the arena.
            scalars: Inputs that are no caller's either, besides those that stay.
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
        """Arrays by slot, those of a caller among them.

        Raises:
            InputError: A name, dtype or shape does not fit.
        """
        return self._external | feeds.bind_inputs(self.inputs, inputs)
