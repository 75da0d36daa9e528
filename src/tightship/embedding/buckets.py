"""Lengths and rows that texts are filled up to, so that few programs serve texts of any length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LENGTH_MIN = 16
"""Tokens of the shortest bucket."""
BETWEEN_MIN = 64
"""Tokens from which on there is a length between two powers of two."""
TOKENS = 256
"""Tokens of a run of several texts, filling included: fewer leave products small."""


@dataclass(frozen=True, slots=True, order=True)
class Bucket:
    """Shape of a run.

    Attributes:
        length: Tokens of each text, filling included.
        rows: Texts.
    """

    length: int
    rows: int


def buckets_of(context: int) -> list[Bucket]:
    """Return the buckets for texts of up to `context` tokens, the most needed first.

    The first serves any text alone; next come shorter ones of one text, then those of several.
    Lengths are powers of two, from 64 on with one between: of random texts a sixth of the tokens
    are filling then, rather than a third.
    """
    powers = [1 << bit for bit in range(LENGTH_MIN.bit_length() - 1, context.bit_length())]
    between = [power * 3 // 2 for power in powers if power >= BETWEEN_MIN]
    lengths = [each for each in sorted({context, *powers, *between}) if each <= context][::-1]
    alone = [Bucket(length, 1) for length in lengths]
    return alone + [Bucket(n, TOKENS // n) for n in reversed(lengths) if n * 2 <= TOKENS]


def runs_of(
    lengths: Sequence[int], buckets: Sequence[Bucket]
) -> Iterator[tuple[Bucket, list[int]]]:
    """Divide texts into runs, the shortest texts first.

    Texts of similar lengths run together. Rows that would stay empty cost as much as texts, so
    that a rest runs together only if it fills more than half of a bucket.

    Args:
        lengths: Tokens of each text, at most those of the longest bucket.
        buckets: Buckets that there are.

    Yields:
        A bucket, and the places of at most as many texts as it has rows.
    """
    left = sorted(range(len(lengths)), key=lengths.__getitem__)
    by_length: dict[int, int] = {}
    for each in sorted(buckets):
        by_length[each.length] = each.rows
    for length, rows in by_length.items():
        count = next((n for n, at in enumerate(left) if lengths[at] > length), len(left))
        fitting, left = left[:count], left[count:]
        while fitting:
            taken = rows if 2 * len(fitting) > rows else 1
            yield Bucket(length, taken), fitting[:taken]
            fitting = fitting[taken:]
