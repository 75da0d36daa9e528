"""Faster R-CNN and Mask R-CNN as torchvision exports them, at an image of one size.

Proposals of five levels are suppressed, features of those that are left are gathered from the level
of their size, and boxes, labels and masks are computed for as many as there are.
"""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from tests.zoo.backbone import backbone
from tests.zoo.net import Case, Net
from tightship.sample.convolutional import RESNET_50, convolution

LEVELS = 4
"""Levels that features of boxes are gathered from; proposals come from one more."""
RATIOS = (0.5, 1.0, 2.0)
"""Heights of anchors over their widths."""
SMALL_GAIN = 0.02
"""Variance of scores and moves, over that which a ReLU asks for: they should not saturate."""
LARGEST_GROWTH = float(np.log(1000 / 16))
_ZERO = helper.make_tensor("value", TensorProto.INT64, [1], [0])


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a detector of two stages, by default torchvision's but for the image.

    Attributes:
        image: Height and width in pixels, a multiple of 64.
        width: Channels of the backbone's first stage.
        blocks: Blocks of the backbone's stages.
        channels: Channels of every level.
        hidden: Width of the head of boxes.
        classes: Classes, the background included.
        proposals: Most proposals of a level, and of all after suppression.
        kept: Most detections.
        pooled: Height and width of a box's features, and of those its mask is made from.
        likely: Least score of a detection, over that of a class drawn at random.
    """

    image: int = 320
    width: int = 64
    blocks: tuple[int, ...] = RESNET_50
    channels: int = 256
    hidden: int = 1024
    classes: int = 91
    proposals: int = 1000
    kept: int = 100
    pooled: tuple[int, int] = (7, 14)
    likely: float = 2.5


SMALL = Sizes(128, 8, (1, 1, 1, 1), 16, 32, 5, 40, 10, (3, 6), 1.3)


def faster_rcnn(batch: int = 1, sizes: Sizes | None = None) -> Case:
    """Boxes (n, 4), labels (n,) and scores (n,) of a picture."""
    assert batch == 1
    detector = _Detector(Net(24), sizes or Sizes())
    boxes, labels, scores = detector.detections()
    detector.net.output(boxes, labels, scores)
    return detector.net.case()


def mask_rcnn(batch: int = 1, sizes: Sizes | None = None) -> Case:
    """Detections of Faster R-CNN, and a mask (n, 1, 28, 28) of each."""
    assert batch == 1
    detector = _Detector(Net(25), sizes or Sizes())
    boxes, labels, scores = detector.detections()
    detector.net.output(boxes, labels, scores, detector.masks(boxes, labels))
    return detector.net.case()


class _Detector:
    """Detector being written."""

    def __init__(self, net: Net, sizes: Sizes) -> None:
        self.net, self.sizes = net, sizes
        self._levels = self._pyramid()

    def detections(self) -> tuple[str, str, str]:
        """Write both stages; return boxes, labels and scores."""
        net, sizes = self.net, self.sizes
        proposals = self._proposals()
        x = self._features(proposals, sizes.pooled[0])
        x = net("Flatten", x, axis=1)
        width = sizes.channels * sizes.pooled[0] ** 2
        x = net("Relu", self._linear(x, width, sizes.hidden))
        x = net("Relu", self._linear(x, sizes.hidden, sizes.hidden))
        logits = self._linear(x, sizes.hidden, sizes.classes, SMALL_GAIN)
        deltas = self._linear(x, sizes.hidden, 4 * sizes.classes, SMALL_GAIN)
        each = net("Reshape", deltas, net.ints(-1, sizes.classes, 4))
        boxes = self._moved(net("Unsqueeze", proposals, net.ints(1)), each, (10.0, 5.0))
        return self._best(boxes, net("Softmax", logits, axis=1))

    def masks(self, boxes: str, labels: str) -> str:
        """Write the head of masks; return that of each box's label."""
        net, sizes, channels = self.net, self.sizes, self.sizes.channels
        x = self._features(boxes, sizes.pooled[1])
        for _ in range(4):
            x = net("Relu", self._conv(x, channels, channels, 3))
        weight = net.weight(channels, channels, 2, 2)
        x = net("ConvTranspose", x, weight, net.bias(channels), strides=[2, 2])
        x = net("Sigmoid", self._conv(net("Relu", x), channels, sizes.classes, 1))
        count = net("Shape", labels)
        zero, one = net.constant(np.int64(0)), net.constant(np.int64(1))
        rows = net("Range", zero, net("Squeeze", count, net.ints(0)), one)
        places = net("Concat", *(net("Unsqueeze", e, net.ints(1)) for e in (rows, labels)), axis=1)
        return net("Unsqueeze", net("GatherND", x, places), net.ints(1))

    def _conv(self, x: str, before: int, after: int, kernel: int, stride: int = 1) -> str:
        net = self.net
        return net(
            "Conv", x, net.weight(after, before, kernel, kernel), net.bias(after),
            strides=[stride] * 2, pads=[kernel // 2] * 4,
        )  # fmt: skip

    def _linear(self, x: str, before: int, after: int, gain: float = 1) -> str:
        net = self.net
        weight = net.weight(after, before, fan_in=before / gain)
        return net("Gemm", x, weight, net.bias(after), transB=1)

    def _pyramid(self) -> list[str]:
        """Write the backbone and the levels, the finest first, and one behind by pooling."""
        net, sizes = self.net, self.sizes
        stages = backbone(net, sizes.image, sizes.width, sizes.blocks)
        levels: list[str] = []
        above = ""
        for x, width in reversed(stages):
            inner = convolution(net, x, width, sizes.channels, 1, gain=0.25)
            if above:
                scales = net.constant(np.float32([1, 1, 2, 2]))
                grown = net(
                    "Resize", above, "", scales, mode="nearest", nearest_mode="floor",
                    coordinate_transformation_mode="asymmetric",
                )  # fmt: skip
                inner = net("Add", inner, grown)
            above = inner
            levels.insert(0, convolution(net, inner, sizes.channels, sizes.channels, 3, gain=0.5))
        levels.append(net("MaxPool", levels[-1], kernel_shape=[1, 1], strides=[2, 2]))
        return levels

    def _proposals(self) -> str:
        """Write the first stage; return boxes (n, 4) of pixels, at most `proposals` of them."""
        net, sizes, channels = self.net, self.sizes, self.sizes.channels
        hidden = net.weight(channels, channels, 3, 3), net.bias(channels)
        heads = [
            (
                net.weight(len(RATIOS) * each, channels, 1, 1, fan_in=channels / SMALL_GAIN),
                net.bias(len(RATIOS) * each),
            )
            for each in (1, 4)
        ]
        found: list[tuple[str, str]] = []
        counts: list[int] = []
        for index, level in enumerate(self._levels):
            x = net("Relu", net("Conv", level, *hidden, pads=[1] * 4))
            side = sizes.image // (4 << index)
            count = side * side * len(RATIOS)
            counts.append(min(count, sizes.proposals))
            scores, deltas = (
                self._flat(net("Conv", x, *head), side, each)
                for head, each in zip(heads, (1, 4), strict=True)
            )
            scores = net("Squeeze", scores, net.ints(1))
            best, order = net.many("TopK", 2, scores, net.ints(counts[-1]), axis=0)
            anchors = net("Gather", net.constant(_anchors(side, sizes.image)), order, axis=0)
            boxes = self._moved(anchors, net("Gather", deltas, order, axis=0), (1.0, 1.0))
            found.append((boxes, net("Sigmoid", best)))
        boxes, scores = (net("Concat", *each, axis=0) for each in zip(*found, strict=True))
        of_level = np.repeat(np.arange(len(counts), dtype=np.float32), counts)
        extents = net("Sub", self._columns(boxes, 2, 4), self._columns(boxes, 0, 2))
        is_large = net("ReduceMin", extents, net.ints(1), keepdims=0)
        large = self._where(net("GreaterOrEqual", is_large, net.scalar(1e-3)))
        boxes, scores = (net("Gather", each, large, axis=0) for each in (boxes, scores))
        groups = net("Gather", net.constant(of_level), large, axis=0)
        kept = self._suppressed(boxes, scores, groups, 0.7, sizes.proposals)
        return net("Gather", boxes, kept, axis=0)

    def _flat(self, x: str, side: int, each: int) -> str:
        """Turn `each` numbers of every ratio and position into rows (positions * ratios, each)."""
        net = self.net
        y = net("Reshape", x, net.ints(1, len(RATIOS), each, side, side))
        y = net("Transpose", y, perm=[0, 3, 4, 1, 2])
        return net("Reshape", y, net.ints(side * side * len(RATIOS), each))

    def _features(self, boxes: str, side: int) -> str:
        """Gather features (n, channels, side, side) of boxes, each from the level of its size."""
        net, sizes = self.net, self.sizes
        extents = net("Sub", self._columns(boxes, 2, 4), self._columns(boxes, 0, 2))
        area = net("ReduceProd", extents, net.ints(1), keepdims=0)
        size = net("Div", net("Sqrt", area), net.scalar(sizes.image / 4))
        power = net("Div", net("Log", size), net.scalar(float(np.log(2))))
        level = net("Floor", net("Add", power, net.scalar(LEVELS - 2 + 1e-6)))
        level = net("Cast", net("Clip", level, net.scalar(0), net.scalar(LEVELS - 1)), to=7)
        shape = net(
            "Concat", net("Shape", boxes, end=1), net.ints(sizes.channels, side, side), axis=0
        )
        result = net("ConstantOfShape", shape)
        for index in range(LEVELS):
            own = self._where(net("Equal", level, net.constant(np.int64(index))))
            places = net("Gather", boxes, own, axis=0)
            images = net("ConstantOfShape", net("Shape", own), value=_ZERO)
            part = net(
                "RoiAlign", self._levels[index], places, images, output_height=side,
                output_width=side, sampling_ratio=2, spatial_scale=1 / (4 << index), mode="avg",
                coordinate_transformation_mode="output_half_pixel",
            )  # fmt: skip
            result = net("ScatterND", result, net("Unsqueeze", own, net.ints(1)), part)
        return result

    def _best(self, boxes: str, scores: str) -> tuple[str, str, str]:
        """Suppress boxes (n, classes, 4) of scores (n, classes), the background left out."""
        net, sizes = self.net, self.sizes
        scores = net("Slice", scores, net.ints(1), net.ints(sizes.classes), net.ints(1))
        boxes = net("Slice", boxes, net.ints(1), net.ints(sizes.classes), net.ints(1))
        count = net("Concat", net("Shape", scores, end=1), net.ints(1), axis=0)
        names = net.constant(np.arange(1, sizes.classes, dtype=np.int64)[None])
        labels = net("Reshape", net("Tile", names, count), net.ints(-1))
        scores, boxes = net("Reshape", scores, net.ints(-1)), net("Reshape", boxes, net.ints(-1, 4))
        likely = self._where(net("Greater", scores, net.scalar(sizes.likely / sizes.classes)))
        found = [net("Gather", each, likely, axis=0) for each in (boxes, labels, scores)]
        groups = net("Cast", found[1], to=1)
        kept = self._suppressed(found[0], found[2], groups, 0.5, sizes.kept)
        boxes, labels, scores = (net("Gather", each, kept, axis=0) for each in found)
        return boxes, labels, scores

    def _suppressed(self, boxes: str, scores: str, groups: str, overlap: float, most: int) -> str:
        """Return places of the best boxes, suppressed only by others of their group."""
        net, sizes = self.net, self.sizes
        shift = net("Mul", groups, net.scalar(sizes.image + 1))
        apart = net(
            "Unsqueeze", net("Add", boxes, net("Unsqueeze", shift, net.ints(1))), net.ints(0)
        )
        rows = net(
            "NonMaxSuppression", apart, net("Unsqueeze", scores, net.ints(0, 1)),
            net.ints(2**40), net.constant(np.float32([overlap])),
        )  # fmt: skip
        places = net("Squeeze", net("Gather", rows, net.ints(2), axis=1), net.ints(1))
        return net("Slice", places, net.ints(0), net.ints(most), net.ints(0))

    def _moved(self, boxes: str, deltas: str, scales: tuple[float, float]) -> str:
        """Apply deltas (..., 4) to boxes (..., 4); return corners within the image."""
        net = self.net
        first, last = self._columns(boxes, 0, 2), self._columns(boxes, 2, 4)
        extent = net("Sub", last, first)
        middle = net("Add", first, net("Mul", extent, net.scalar(0.5)))
        move = net("Div", self._columns(deltas, 0, 2), net.scalar(scales[0]))
        growth = net("Div", self._columns(deltas, 2, 4), net.scalar(scales[1]))
        growth = net("Clip", growth, "", net.scalar(LARGEST_GROWTH))
        middle = net("Add", net("Mul", move, extent), middle)
        half = net("Mul", net("Mul", net("Exp", growth), extent), net.scalar(0.5))
        corners = net("Concat", net("Sub", middle, half), net("Add", middle, half), axis=-1)
        return net("Clip", corners, net.scalar(0), net.scalar(self.sizes.image))

    def _columns(self, x: str, start: int, stop: int) -> str:
        net = self.net
        return net("Slice", x, net.ints(start), net.ints(stop), net.ints(-1))

    def _where(self, flags: str) -> str:
        net = self.net
        return net("Squeeze", net("NonZero", flags), net.ints(0))


def _anchors(side: int, image: int) -> np.ndarray:
    """Corners (side * side * ratios, 4) of anchors of a level, eight of its cells large."""
    cell = image / side
    heights = 8 * cell * np.sqrt(RATIOS)
    widths = 8 * cell / np.sqrt(RATIOS)
    y, x = np.meshgrid(np.arange(side) * cell, np.arange(side) * cell, indexing="ij")
    middle = np.stack((x, y, x, y), -1)[:, :, None]
    around = np.stack((-widths, -heights, widths, heights), -1) / 2
    return (middle + around).reshape(-1, 4).astype(np.float32)
