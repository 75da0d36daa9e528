"""Sizes the slabs of a composite by a workload's peak."""

from collections.abc import Mapping

from tightship._core import default_slabs
from tightship.deprecated import takes_old_parameters
from tightship.public_calls import public_call
from tightship.quantity import parse_bytes

SLACK = 1.25
"""Factor by which a slab exceeds the profile's peak."""

SHARE_MAX = 0.9

WORD_BLOCKS = 64
"""Least blocks of a slab: those of one word of its bitmap."""

PAGE_BYTES = 4096

BLOCK_SIZES = tuple(block_bytes for block_bytes, _ in default_slabs())


@public_call
@takes_old_parameters("divide")
def divide(
    peak_counts: Mapping[int, int],
    size_bytes: int | str,
    block_sizes: tuple[int, ...] = BLOCK_SIZES,
) -> tuple[tuple[int, float], ...]:
    """Compute shares of slabs for a profile's peak, each size in its smallest slab.

    Args:
        peak_counts: Most live blocks at once, by request size in bytes.
        size_bytes: Size of the composite to divide.
        block_sizes: Block sizes of slabs to choose from, rising.

    Returns:
        Pairs of a block's bytes and a share, without unused slabs. Sizes above the largest slab
            take none; if slabs would take more than nine tenths, all shrink alike.

    Raises:
        InputError: `size_bytes` is not an amount of memory.
    """
    region_bytes = parse_bytes(size_bytes, "size_bytes")
    needed = dict.fromkeys(block_sizes, 0)
    for requested_bytes, count in peak_counts.items():
        slab = next((block for block in block_sizes if requested_bytes <= block), None)
        if slab is not None:
            needed[slab] += count * slab
    shares = {
        block: max(SLACK * size, WORD_BLOCKS * block + 2 * PAGE_BYTES) / region_bytes
        for block, size in needed.items()
        if size > 0
    }
    excess = max(1.0, sum(shares.values()) / SHARE_MAX)
    return tuple((block, share / excess) for block, share in shares.items())
