"""Emits convolutions of 3x3 by Winograd's algorithm, which multiplies a quarter as often.

Its results differ from those of a direct convolution by rounding: their error is some five times
as large, which is less than a hundred thousandth of the largest result.
"""

from dataclasses import dataclass

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.native.streamed import (
    addend_and_activation,
    is_covered,
    stands_alone,
)
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.images import (
    BLOCK,
    image_layout,
    image_source,
    image_strides,
)
from tightship.engine.lower.steps.layouts import AVX2
from tightship.engine.lower.steps.window import window_of
from tightship.graph import Node, element_count

PACKED = "Acdb16a"
"""Layout of weights, [outputs, channels, 3, 3], as the kernel transforms them."""
TILE = 4
"""Side of a tile of results."""
TRANSFORMED = 14.0
"""Multiplications that take as long as transforming a tile of a channel, before or after."""
WEIGHTS = 8.0
"""Multiplications that take as long as transforming the weights of two channels."""
AT_ONCE = ((112, 64), (14, 64), (14, 32))
"""Tiles, at most, and channels of weights that are transformed at once, the fastest first."""
TILES_AT_ONCE = 64
"""Tiles, about, for which weights are transformed once."""
SHARE_MAX = 0.8
"""Largest share of a direct convolution's time that is worth the loss of exactness."""
INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Convolution of an image.

    Attributes:
        counts: Images, channels, outputs.
        sizes: Height and width of the source and of the target, and the padding before.
        bias: Name of the bias; empty for none.
        addend: Name of what is added; empty for nothing.
        swishes: Whether results are a Swish.
        limits: Limits of results without one.
    """

    counts: tuple[int, int, int]
    sizes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    bias: str
    addend: str
    swishes: bool
    limits: tuple[float, float]

    @property
    def pays(self) -> bool:
        """Whether products and transforms take less time than a direct convolution."""
        batch, channels, outputs = self.counts
        pixels = batch * element_count(self.sizes[1])
        tiles = batch * element_count([-(-length // TILE) for length in self.sizes[1]])
        pairs = channels * outputs / BLOCK
        ours = (
            36 * tiles * pairs
            + TRANSFORMED * tiles * (channels + outputs)
            + WEIGHTS * pairs * max(tiles / TILES_AT_ONCE, 1)
        )
        return ours < SHARE_MAX * 9 * pixels * pairs

    def kernel(
        self, at_once: tuple[int, int], strides: tuple[list[int], list[int]]
    ) -> NativeKernel:
        """Make the kernel for images with these strides."""
        return NativeKernel.winograd(
            list(self.counts), list(map(list, self.sizes)), strides, list(at_once), self.swishes,
            self.limits, bool(self.bias), bool(self.addend),
        )  # fmt: skip

    def at_once(self, room: int | None, threads: int) -> tuple[int, int] | None:
        """Return how much to transform at once, with scratch of at most `room` bytes."""
        anywhere = [0] * 4, [0] * 4
        for each in AT_ONCE:
            if room is None or self.kernel(each, anywhere).scratch_bytes(threads) <= room:
                return each
        return None


def winograd(builder: Builder, node: Node) -> bool:
    """Emit a convolution, if the algorithm makes it faster and the plan no larger."""
    if not builder.options.winograd or node.operator != "Conv" or node.domain:
        return False
    found = _convolution(builder, node) if is_covered(builder, node, AVX2) else None
    if found is None or not _is_chosen(builder, node, found):
        return False
    at_once = found.at_once(builder.options.scratch_room.get(node.name), builder.threads)
    if at_once is None:
        return False
    _emit(builder, node, found, at_once)
    return True


def _convolution(builder: Builder, node: Node) -> _Convolution | None:
    """Describe a convolution that the kernel covers."""
    before, after, weights = (
        builder.value(name).static_shape
        for name in (node.inputs[0], node.outputs[0], node.inputs[1])
    )
    if weights[2:] != (3, 3) or node.attributes.get("group", 1) != 1:
        return None
    window = window_of(node, (3, 3), before[2:], after[2:])
    ending = _ending(builder, node)
    if (
        ending is None
        or window.strides != (1, 1)
        or window.dilations != (1, 1)
        or not all(0 <= pad < 3 for pad in (*window.begin, *window.end))
        or before[1] % BLOCK
        or after[1] % BLOCK
    ):
        return None
    counts = before[0], before[1], after[1]
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    return _Convolution(counts, (before[2:], after[2:], window.begin), bias, *ending)


def _ending(builder: Builder, node: Node) -> tuple[str, bool, tuple[float, float]] | None:
    """Return the addend, whether there is a Swish, and limits, if nothing else is fused."""
    found = addend_and_activation(builder, node)
    if found is None:
        return None
    addend, activation = found
    algorithm, alpha, beta = activation or ("clip", -INFINITY, INFINITY)
    if algorithm == "clip":
        return addend, False, (alpha, beta)
    if algorithm == "relu" and alpha == 0.0:
        return addend, False, (0.0, INFINITY)
    if algorithm == "swish" and alpha == 1.0:
        return addend, True, (-INFINITY, INFINITY)
    return None


def _is_chosen(builder: Builder, node: Node, convolution: _Convolution) -> bool:
    """Whether the algorithm pays.

    If a program for other shapes has packed the weights, their layout decides, because a second
    copy costs more than is gained.
    """
    dims = list(builder.value(node.inputs[1]).static_shape)
    packed = builder.packed_layout(node.inputs[1], dims)
    if packed is not None:
        return packed == MemoryDesc.named(dims, "float32", PACKED)
    return convolution.pays


def _emit(
    builder: Builder, node: Node, convolution: _Convolution, at_once: tuple[int, int]
) -> None:
    dims = list(builder.value(node.inputs[1]).static_shape)
    weights = MemoryDesc(dims), MemoryDesc.named(dims, "float32", PACKED)
    layout = image_layout(builder, builder.value(node.outputs[0]).static_shape)
    reads = [
        image_source(builder, node.inputs[0]),
        builder.weight(node.inputs[1], *weights),
    ]
    if convolution.bias:
        vector = MemoryDesc([dims[0]])
        reads.append(builder.weight(convolution.bias, vector, vector))
    if convolution.addend:
        reads.append(builder.in_layout(convolution.addend, layout))
    target = builder.output(node.writes[0], layout)
    kernel = convolution.kernel(at_once, (image_strides(reads[0]), image_strides(target)))
    in_place = [(target, reads[-1])] if convolution.addend and stands_alone(reads) else []
    builder.native(node, ("winograd", kernel), reads, [target], in_place=in_place)
