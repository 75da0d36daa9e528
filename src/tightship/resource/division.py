"""How large each slab of a composite should be, from what a workload holds at its peak."""

from collections.abc import Mapping

from tightship._core import default_slabs
from tightship.public_calls import public_call

SLACK = 1.25
"""A slab is made larger than the profile's peak by this factor."""

SHARE_MAX = 0.9

WORD_BLOCKS = 64
"""A slab of fewer blocks is none: they are what one word of its bitmap tells of."""

PAGE_BYTES = 4096

BLOCK_SIZES = tuple(block_bytes for block_bytes, _ in default_slabs())


@public_call
def divide(
    peak_counts: Mapping[int, int],
    region_bytes: int,
    block_sizes: tuple[int, ...] = BLOCK_SIZES,
) -> tuple[tuple[int, float], ...]:
    """Shares of slabs that hold what a profile held at once, each size in its smallest slab.

    Args:
        peak_counts: For each size of a request in bytes, the most blocks that were live at once.
        region_bytes: Of the composite that is divided.
        block_sizes: Of the slabs to choose from, rising.

    Returns:
        Pairs of a block's bytes and a share, without slabs that nothing goes to. Sizes above the
        largest slab take none; where slabs would take more than nine tenths, all shrink alike.
    """
    needed = dict.fromkeys(block_sizes, 0)
    for size_bytes, count in peak_counts.items():
        slab = next((block for block in block_sizes if size_bytes <= block), None)
        if slab is not None:
            needed[slab] += count * slab
    shares = {
        block: max(SLACK * size, WORD_BLOCKS * block + 2 * PAGE_BYTES) / region_bytes
        for block, size in needed.items()
        if size > 0
    }
    excess = max(1.0, sum(shares.values()) / SHARE_MAX)
    return tuple((block, share / excess) for block, share in shares.items())
