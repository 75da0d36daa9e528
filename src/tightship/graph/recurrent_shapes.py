"""Shapes of the operands of RNN, GRU and LSTM, which follow from a few lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship.graph.layout import Dimension

GATES: Mapping[str, int] = {"GRU": 3, "LSTM": 4, "RNN": 1}
DIRECTIONS: Mapping[str, int] = {"forward": 1, "reverse": 1, "bidirectional": 2}

Shapes = tuple[tuple[Dimension, ...], ...]


@dataclass(frozen=True, slots=True)
class RecurrentShapes:
    """Shapes of the inputs and outputs, in ONNX's order."""

    inputs: Shapes
    outputs: Shapes


def recurrent_shapes(
    operator: str,
    directions: int,
    x: Sequence[Dimension],
    hidden: int,
    *,
    by_batch: bool,
) -> RecurrentShapes:
    """Return the shapes for an input of rank three and `hidden` units.

    Args:
        operator: `RNN`, `GRU` or `LSTM`.
        directions: Number of directions, 1 or 2.
        x: Shape of the input: steps, batch and width, or batch first.
        hidden: Units of a direction.
        by_batch: Whether the batch is the first axis of the input, the states and the outputs.
    """
    steps, batch = (x[1], x[0]) if by_batch else (x[0], x[1])
    rows = GATES[operator] * hidden
    state = (batch, directions, hidden) if by_batch else (directions, batch, hidden)
    sequence = (
        (batch, steps, directions, hidden) if by_batch else (steps, directions, batch, hidden)
    )
    return RecurrentShapes(
        (
            tuple(x), (directions, rows, x[2]), (directions, rows, hidden), (directions, 2 * rows),
            (batch,), state, state, (directions, 3 * hidden),
        ),
        (sequence, state, state),
    )  # fmt: skip


def agree(first: Sequence[Dimension], second: Sequence[Dimension]) -> bool:
    """Whether two shapes have the same rank and no known lengths that differ."""
    return len(first) == len(second) and all(
        a == b
        for a, b in zip(first, second, strict=True)
        if isinstance(a, int) and isinstance(b, int)
    )
