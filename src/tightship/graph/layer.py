"""Opaque layers: operators with forward and backward callables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightship.graph.constant import Array

TRAINING = "tightship.training"
"""Domain of layers, and of the operators of gradients (`graph.backward.operators`)."""

Forward = Callable[[Sequence[Array], Sequence[Array]], None]
"""Function `forward(inputs, outputs)` that fills the outputs."""
Backward = Callable[[Sequence[Array | None], Sequence[Array], Sequence[Array | None]], None]
"""Function `backward(gradients, reads, input_gradients)` that fills the inputs' gradients.

`gradients` are those of the outputs, None if one has none; `reads` are the inputs, then the
outputs, that the layer declares to read; a gradient that is not needed is None.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Operator of which the graph knows only the operands.

    Arrays are C-contiguous, of the graph's types, at planned offsets. A callable must not keep
    them, and must return equal results for equal operands. Whatever else the backward needs must be
    an output: planned like any value, free when the backward has run.

    Attributes:
        forward: Function that fills the outputs.
        backward: Function that fills the gradients of the inputs; None if there is none.
        reads_inputs: Indices of the inputs that the backward reads; others are free early.
        reads_outputs: Indices of the outputs that the backward reads.
    """

    forward: Forward
    backward: Backward | None = None
    reads_inputs: tuple[int, ...] = ()
    reads_outputs: tuple[int, ...] = ()
