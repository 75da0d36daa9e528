"""Changes the batch of a model, and finds the largest batch that fits."""

from collections.abc import Callable, Mapping, Sequence

from tightship.errors import InputError
from tightship.graph import Shape
from tightship.public_calls import public_call

BATCH_MAX = 2**20
"""Largest batch that is considered."""


@public_call
def with_batch(
    declared: Mapping[str, Shape | None], shapes: Mapping[str, Sequence[int]], batch: int
) -> dict[str, tuple[int, ...]]:
    """Return shapes of inputs with another batch, which is their symbolic leading dimension.

    If the leading dimensions of inputs have several names, the batch is the first of them.

    Args:
        declared: Shapes of the inputs in the file.
        shapes: Shapes that the caller gives.
        batch: The batch.

    Returns:
        The given shapes, and those of inputs with the batch.

    Raises:
        InputError: No input has a symbolic first dimension, or another dimension is unknown.
    """
    open_shapes = {
        name: shape for name, shape in declared.items() if shape and not isinstance(shape[0], int)
    }
    if not open_shapes:
        raise InputError(
            "No input of the model has a symbolic first dimension, so the batch is fixed in the "
            "file. Export the model with a symbolic batch."
        )
    symbol = next(iter(open_shapes.values()))[0]
    batched = {name: tuple(shape) for name, shape in shapes.items()}
    for name, shape in open_shapes.items():
        if shape[0] == symbol:
            rest = batched.get(name, shape)[1:]
            lengths = tuple(length for length in rest if isinstance(length, int))
            if len(lengths) < len(rest):
                raise InputError(
                    f"Input `{name}` has unknown lengths besides its batch. Give them all: "
                    f"--shape {name}={'x'.join(['1', *(str(d or 1) for d in rest)])}."
                )
            batched[name] = (batch, *lengths)
    return batched


def largest_batch(bytes_of: Callable[[int], int], limit_bytes: int) -> int:
    """Find the largest batch that takes at most `limit_bytes`; 0 if none does.

    Args:
        bytes_of: Returns the bytes of a batch; must not fall as the batch grows. If the bytes grow
            linearly, as they mostly do, it is called four times.
        limit_bytes: Most bytes that the batch may take.
    """
    one = bytes_of(1)
    if one > limit_bytes:
        return 0
    slope = max(1, bytes_of(2) - one)
    low, high = 1, BATCH_MAX + 1
    # A linear model gives the first guess; the step from it doubles until the answer is bracketed,
    # and bisection follows.
    guess = min(BATCH_MAX, 1 + (limit_bytes - one) // slope)
    step = 1
    while high - low > 1:
        guess = min(max(guess, low + 1), high - 1)
        if bytes_of(guess) <= limit_bytes:
            low, guess = guess, guess + step if high > BATCH_MAX else (guess + high) // 2
        else:
            high, guess = guess, guess - step if low == 1 else (low + guess) // 2
        step *= 2
    return low
