"""One node, the batch axes of its inputs, and what has to change around it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from tightship.errors import InputError
from tightship.graph.ir import Graph, Node


class FixedBatchError(InputError):
    """A node does not let the batch be changed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node being followed.

    Attributes:
        graph: Graph of the node, for the batch of its file.
        node: The node.
        batch: Samples in the file.
        axes: Batch axis of each input; None for one without samples.
        targets: Batch axis that a shape among the inputs gives to the result, by input.
        repeated: Constants that need one copy for each sample: axis by input.
    """

    graph: Graph
    node: Node
    batch: int
    axes: tuple[int | None, ...]
    targets: dict[int, int] = field(default_factory=dict)
    repeated: dict[int, int] = field(default_factory=dict)

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error that names the node.

        Raises:
            FixedBatchError: Always.
        """
        raise FixedBatchError(f"Node `{self.node.name}` ({self.node.operator}) {reason}.")

    @property
    def main(self) -> int:
        """Batch axis of the first input."""
        if not self.axes or self.axes[0] is None:
            self.refuse("has its samples in another input than the first")
        return self.axes[0]

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self._static(self.node.inputs[index])

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the first output."""
        return self._static(self.node.outputs[0])

    def _static(self, name: str) -> tuple[int, ...]:
        value = self.graph.value(name)
        constant = self.graph.constant(name)
        if constant is not None:
            return constant.shape
        if not value.is_static:
            self.refuse("has a shape that data decide")
        return value.static_shape

    def integers(self, index: int, attribute: str) -> tuple[int, ...] | None:
        """Return integers that are an input or an attribute; None if neither is there."""
        if index < len(self.node.inputs) and self.node.inputs[index]:
            constant = self.graph.constant(self.node.inputs[index])
            if constant is None:
                self.refuse(f"computes its {attribute}")
            return tuple(int(each) for each in constant.array().reshape(-1).tolist())
        given = self.node.attributes.get(attribute)
        if given is None:
            return None
        return tuple(int(each) for each in (given if isinstance(given, tuple) else (str(given),)))

    def alone(self, *indices: int) -> None:
        """Refuse samples in inputs other than these."""
        for index, axis in enumerate(self.axes):
            if axis is not None and index not in indices:
                self.refuse(f"has samples in input {index}, `{self.node.inputs[index]}`")

    def apart_from(self, axis: int, axes: Sequence[int], rank: int, what: str) -> None:
        """Refuse work along the batch axis."""
        if axis in {each % rank for each in axes}:
            self.refuse(f"{what} along the batch, axis {axis}")

    def repeat(self, index: int, axis: int) -> None:
        """Give each sample a copy of a constant whose length at `axis` is that of the batch."""
        name = self.node.inputs[index]
        constant = self.graph.constants.get(name)
        if constant is None:
            self.refuse(f"reads `{name}`, whose axis {axis} has the length of the batch")
        if constant.shape[axis] != self.batch:
            self.refuse(f"reads `{name}`, whose axis {axis} is not as long as the batch")
        elements = constant.array()
        if not np.array_equal(elements, np.broadcast_to(elements.take([0], axis), elements.shape)):
            self.refuse(f"reads the constant `{name}`, which differs between samples")
        self.repeated[index] = axis


Rule = Callable[[Step], tuple[int | None, ...]]
"""Function from a step to the batch axis of each output; the last one holds for all that follow."""
Rules = Mapping[str, Rule]
