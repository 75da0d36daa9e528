"""Another batch for a model, and the largest that fits."""

from collections.abc import Callable, Mapping, Sequence

from tightship.errors import InputError
from tightship.graph import Shape
from tightship.public_calls import public_call

BATCH_MAX = 2**20
"""No larger batch is looked for."""


@public_call
def with_batch(
    declared: Mapping[str, Shape | None], shapes: Mapping[str, Sequence[int]], batch: int
) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs with another batch: the leading dimension that the file leaves open.

    Where the leading dimensions of inputs have several names, the batch is the first of them.

    Args:
        declared: Shapes of the inputs as the file has them.
        shapes: Shapes given by the caller.
        batch: The batch.

    Raises:
        InputError: No input leaves its first dimension open, or another one is not known.
    """
    open_shapes = {
        name: shape for name, shape in declared.items() if shape and not isinstance(shape[0], int)
    }
    if not open_shapes:
        raise InputError(
            "No input of the model leaves its first dimension open: the batch is fixed in the "
            "file. Export it with a symbolic batch."
        )
    symbol = next(iter(open_shapes.values()))[0]
    batched = {name: tuple(shape) for name, shape in shapes.items()}
    for name, shape in open_shapes.items():
        if shape[0] == symbol:
            rest = batched.get(name, shape)[1:]
            lengths = tuple(length for length in rest if isinstance(length, int))
            if len(lengths) < len(rest):
                raise InputError(
                    f"Input `{name}` has lengths besides its batch that are not known. Give them "
                    f"all: --shape {name}={'x'.join(['1', *(str(d or 1) for d in rest)])}."
                )
            batched[name] = (batch, *lengths)
    return batched


def largest_batch(bytes_of: Callable[[int], int], limit_bytes: int) -> int:
    """The largest batch that takes at most `limit_bytes`; 0 if none does.

    A larger batch is taken to need no less. Where bytes grow in proportion, as they mostly do,
    `bytes_of` is called four times.
    """
    one = bytes_of(1)
    if one > limit_bytes:
        return 0
    slope = max(1, bytes_of(2) - one)
    low, high = 1, BATCH_MAX + 1
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
