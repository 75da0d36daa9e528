"""Opaque layers: an operator that is a forward and a backward callable; and its domain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightship.graph.constant import Array

TRAINING = "tightship.training"
"""The domain of layers, and of what gradients are written with (`graph.backward.operators`)."""

Forward = Callable[[Sequence[Array], Sequence[Array]], None]
"""`forward(inputs, outputs)` fills the outputs."""
Backward = Callable[[Sequence[Array | None], Sequence[Array], Sequence[Array | None]], None]
"""`backward(gradients, reads, input_gradients)` fills the gradients of the inputs.

`gradients` are those of the outputs and None where one has none; `reads` are the inputs, then the
outputs, that the layer says it reads; a gradient that nobody wants is None."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """An operator of which the graph knows nothing but operands.

    Arrays are C-contiguous, of the types that the graph gives them, and lie where the plan says;
    a callable keeps none of them, and gives equal results for equal operands. What the backward
    needs besides is an output of its own: planned like any value, free when the backward has run.

    Attributes:
        forward: Fills the outputs.
        backward: Fills the gradients of the inputs; None where there is none.
        reads_inputs: Indices of the inputs that the backward reads; others are free at once.
        reads_outputs: Indices of the outputs that it reads.
    """

    forward: Forward
    backward: Backward | None = None
    reads_inputs: tuple[int, ...] = ()
    reads_outputs: tuple[int, ...] = ()
