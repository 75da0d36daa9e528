"""Tells what flows between the stages of a model and the process that calls them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.cluster.replica import Array
from tightship.cluster.splitting import Stage
from tightship.errors import InputError

CALLER = -1
"""Stands for the calling process among the stages."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Values that one sends to another.

    Attributes:
        sender: Index of a stage, or `CALLER`.
        receiver: Index of a later stage, or `CALLER`.
        names: Names of the values.
    """

    sender: int
    receiver: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageGraph:
    """Stages of one model, all of them and in order, with what flows between them.

    Attributes:
        stages: The stages.
        flows: What each sends to each other.
    """

    stages: tuple[Stage, ...]
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, stages: Sequence[Stage]) -> "StageGraph":
        """Connect the stages of a model.

        Raises:
            InputError: There are none, they are of different models, or one is missing.
        """
        if not stages:
            raise InputError("0 stages were given; give `Split.stages`.")
        if other := [each for each in stages if each.origin != stages[0].origin]:
            raise InputError(
                f"`{other[0].plan.model}` and `{stages[0].plan.model}` are stages of different "
                "models or splits; give the stages of one split."
            )
        writer: dict[str, int] = {}
        flows: dict[tuple[int, int], list[str]] = {}
        for index, stage in enumerate(stages):
            for name in stage.plan.inputs:
                sender = CALLER if name not in stage.received else writer.get(name)
                if sender is None:
                    raise InputError(
                        f"`{stage.plan.model}` needs `{name}`, which no stage before it computes; "
                        "give all stages of a split in order."
                    )
                flows.setdefault((sender, index), []).append(name)
            if not stage.plan.inputs:  # only a message makes a stage run
                flows[CALLER, index] = []
            writer |= dict.fromkeys(stage.plan.outputs, index)
            if stage.results or not stage.plan.outputs:
                flows[index, CALLER] = list(stage.results)
        found = cls(tuple(stages), tuple([Flow(*pair, tuple(names))
                                          for pair, names in flows.items()]))  # fmt: skip
        found._check_used()
        return found

    def _check_used(self) -> None:
        used = {name for flow in self.flows for name in flow.names}
        for stage in self.stages:
            for name in stage.plan.outputs:
                if name not in used:
                    raise InputError(
                        f"`{stage.plan.model}` computes `{name}`, which no stage behind it takes; "
                        "give all stages of a split in order."
                    )

    def to(self, receiver: int) -> list[Flow]:
        """Return what a stage or the caller receives, by sender."""
        return [flow for flow in self.flows if flow.receiver == receiver]

    def sent_by(self, sender: int) -> list[Flow]:
        """Return what a stage or the caller sends, by receiver."""
        return [flow for flow in self.flows if flow.sender == sender]

    @property
    def inputs(self) -> dict[str, str]:
        """Inputs of the model that stages take, with type and shape."""
        return {
            name: self.stages[flow.receiver].plan.inputs[name]
            for flow in self.sent_by(CALLER)
            for name in flow.names
        }

    @property
    def message_bytes(self) -> int:
        """Upper bound on the bytes that one sends to another in a call."""
        return max(stage.plan.io_bytes for stage in self.stages)

    def divided(self, inputs: Mapping[str, Array]) -> list[dict[str, Array]]:
        """Divide the inputs of a call among the stages, one part for each flow from the caller.

        Raises:
            InputError: A name is missing or unknown, or a dtype or shape does not fit.
        """
        wanted = self.inputs
        if inputs.keys() != wanted.keys():
            missing = [f"`{name}` is missing" for name in wanted if name not in inputs]
            unknown = [f"unknown input `{name}`" for name in inputs if name not in wanted]
            expected = ", ".join(f"`{name}` ({each})" for name, each in wanted.items())
            said = "; ".join([*unknown[:1], *missing[:1]])
            raise InputError(f"{said[0].upper()}{said[1:]}; the model's inputs are {expected}.")
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        for name, array in arrays.items():
            shape = "x".join(map(str, array.shape)) or "scalar"
            if (given := f"{shape} {array.dtype.name}") != wanted[name]:
                raise InputError(f"Input `{name}` is {given}; the plan is for {wanted[name]}.")
        return [{name: arrays[name] for name in flow.names} for flow in self.sent_by(CALLER)]
