"""Operand rules of parameters: of normalizations, activations and products, scalars and lists."""

from collections.abc import Callable

from tightship.graph.operands.operands import MisfitError, Operands, text

BROADCASTING = 7
"""First opset in which operands are aligned at their last axis."""
CHANNEL_SCALES = 21
"""First opset in which GroupNormalization has a scale for each channel."""


def batch_normalization(at: Operands) -> None:
    x = at.shape(0)
    channels = x[1] if len(x) > 1 else 1
    for place in range(1, 5):
        at.require(place, (channels,))


def instance_normalization(at: Operands) -> None:
    channels = at.shape(0, 2)[1]
    at.require(1, (channels,))
    at.require(2, (channels,))


def group_normalization(at: Operands) -> None:
    x = at.shape(0, 2)
    groups, channels = at.integer("num_groups", 1), x[1]
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        at.refuse(0, f"dimension 1 must be a multiple of num_groups={groups}")
    count = channels if at.version >= CHANNEL_SCALES else groups
    at.require(1, (count,))
    at.require(2, (count,))


def layer_normalization(at: Operands) -> None:
    x = at.shape(0, 1)
    at.axis("axis", -1, len(x))
    at.require_spread(1, x)
    at.require_spread(2, x)


def along_axis(at: Operands) -> None:
    at.axis("axis", -1, len(at.shape(0)))


def prelu(at: Operands) -> None:
    if at.version >= BROADCASTING:
        at.require_spread(1, at.shape(0))


def gemm(at: Operands) -> None:
    at.require_rank(0, 2)
    at.require_rank(1, 2)
    left, right = at.shape(0), at.shape(1)
    rows, columns = (
        left[1 if at.integer("transA", 0) else 0],
        right[0 if at.integer("transB", 0) else 1],
    )
    if at.version >= BROADCASTING:
        at.require_spread(2, (rows, columns))


def cumulative(at: Operands) -> None:
    at.shape(0, 1)
    at.require_one(1)


def depth_to_space(at: Operands) -> None:
    block = at.integer("blocksize", 1)
    at.require_rank(0, 4)
    channels = at.shape(0)[1]
    if block < 1 or (isinstance(channels, int) and channels % (block * block)):
        at.refuse(0, f"dimension 1 must be a multiple of blocksize * blocksize = {block * block}")


def space_to_depth(at: Operands) -> None:
    block = at.integer("blocksize", 1)
    at.require_rank(0, 4)
    if block < 1 or any(isinstance(n, int) and n % block for n in at.shape(0)[2:]):
        at.refuse(0, f"dimensions 2 and 3 must be multiples of blocksize={block}")


def transpose(at: Operands) -> None:
    order, x = at.integers("perm"), at.shape(0)
    if order is not None and sorted(order) != list(range(len(x))):
        raise MisfitError(
            f"perm is {list(order)}, but `{at.names[0]}` has the shape {text(x)}: it must hold "
            f"each axis below {len(x)} once"
        )


def axes(at: Operands) -> None:
    """Require a list of axes."""
    found = at.find(1)
    if found is not None and len(found) > 1:
        at.refuse(1, "a list is needed")


def pad(at: Operands) -> None:
    axes = at.find(3)
    rank = len(at.shape(0)) if not at.has(3) else None if axes is None else (*axes, 1)[0]
    at.require(1, (2 * rank if isinstance(rank, int) else None,))
    at.require_one(2)


def resize(at: Operands) -> None:
    given = at.integers("axes")
    count = len(at.shape(0)) if given is None else len(given)
    roi, scales, sizes = (1, 2, 3) if at.version >= 11 else (9, 1, 9)
    for place, length in ((roi, 2 * count), (scales, count), (sizes, count)):
        found = at.find(place)
        if found is not None and found != (0,):
            at.require(place, (length,))


def tile(at: Operands) -> None:
    if at.version >= 6:
        at.require(1, (len(at.shape(0)),))


def split(at: Operands) -> None:
    at.require(1, (at.outputs,))


def crop(at: Operands) -> None:
    given = at.integers("axes")
    at.require(1, (len(at.shape(0)) if given is None else len(given),))


def affine_grid(at: Operands) -> None:
    theta = at.shape(0)
    at.require(0, (None, 2, 3), (None, 3, 4))
    at.require(1, (5 if theta[1] == 3 else 4 if theta[1] == 2 else None,))


def stft(at: Operands) -> None:
    if len(at.shape(0, 2)) != 2:
        at.require(0, (None, None, 1), (None, None, 2))
    at.require_one(1, 3)
    at.require_rank(2, 1)


def ones(places: str) -> Callable[[Operands], None]:
    """Require that the inputs at places, written between spaces, have one element each."""

    def rule(at: Operands) -> None:
        at.require_one(*map(int, places.split()))

    return rule
