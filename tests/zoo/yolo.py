"""YOLOv8 as Ultralytics exports it: C2f blocks, pyramid pooling, two heads, decoded boxes."""

import numpy as np

from tests.zoo.convolutional import conv
from tests.zoo.efficient import Point, swish
from tests.zoo.net import Case, Net

BINS = 16
"""Bins of the distribution whose mean is a side's distance."""
CLASSES = 80
DETECTIONS = 300
"""Most detections of a class."""
LIKELY = 0.55
"""Least score of a detection: few of random weights are far from a half."""


def yolo(
    batch: int = 1,
    size: int = 640,
    width: int = 16,
    classes: int = CLASSES,
    *,
    suppressed: bool = False,
) -> Case:
    """The nano model (width 16); boxes and scores of every cell of three grids.

    With `suppressed` the boxes, scores and labels of detections instead, as many as there are.
    """
    net = Net(33)
    x = _block(net, (net.normal("images", batch, 3, size, size), 3), width, 3, 2)
    levels = []
    for count, factor in ((1, 2), (2, 4), (2, 8), (1, 16)):
        x = _c2f(net, _block(net, x, factor * width, 3, 2), factor * width, count, shortcut=True)
        levels.append(x)
    deep = _pooled(net, x)
    middle = _c2f(net, _up(net, deep, levels[2]), 8 * width, 1)
    fine = _c2f(net, _up(net, middle, levels[1]), 4 * width, 1)
    middle = _c2f(net, _joined(net, _block(net, fine, 4 * width, 3, 2), middle), 8 * width, 1)
    deep = _c2f(net, _joined(net, _block(net, middle, 8 * width, 3, 2), deep), 16 * width, 1)
    found = _decoded(net, (fine, middle, deep), (batch, size, classes))
    net.output(*(_suppressed(net, found, classes) if suppressed else [found]))
    return net.case()


def _suppressed(net: Net, found: str, classes: int) -> tuple[str, str, str]:
    """Suppress boxes by class, as exports with NMS inside do; gather what is left."""
    boxes, scores = net.many("Split", 2, found, net.ints(4, classes), axis=1)
    boxes = net("Transpose", boxes, perm=[0, 2, 1])
    most, overlap = net.ints(DETECTIONS), net.constant(np.float32([0.45]))
    kept = net("NonMaxSuppression", boxes, scores, most, overlap,
               net.constant(np.float32([LIKELY])), center_point_box=1)  # fmt: skip
    images, labels, places = net.many("Split", 3, kept, net.ints(1, 1, 1), axis=1)
    cells = net("Concat", images, places, axis=1)
    of_class = net("GatherND", scores, net("Concat", images, labels, places, axis=1))
    return net("GatherND", boxes, cells), of_class, net("Squeeze", labels, net.ints(1))


def _block(net: Net, point: Point, channels: int, kernel: int, stride: int = 1) -> Point:
    """A convolution and its SiLU."""
    x = conv(net, *point, channels, kernel, strides=[stride] * 2)
    return swish(net, x), channels


def _joined(net: Net, *points: Point) -> Point:
    return net("Concat", *(x for x, _ in points), axis=1), sum(c for _, c in points)


def _c2f(net: Net, point: Point, channels: int, count: int, *, shortcut: bool = False) -> Point:
    """Half of the channels goes through bottlenecks; all their results are joined."""
    half = channels // 2
    x, _ = _block(net, point, channels, 1)
    parts = [(part, half) for part in net.many("Split", 2, x, net.ints(half, half), axis=1)]
    for _ in range(count):
        y, _ = _block(net, _block(net, parts[-1], half, 3), half, 3)
        parts.append((net("Add", parts[-1][0], y) if shortcut else y, half))
    return _block(net, _joined(net, *parts), channels, 1)


def _pooled(net: Net, point: Point) -> Point:
    """SPPF: three poolings one after the other, joined."""
    channels = point[1]
    parts = [_block(net, point, channels // 2, 1)]
    for _ in range(3):
        pooled = net("MaxPool", parts[-1][0], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1])
        parts.append((pooled, channels // 2))
    return _block(net, _joined(net, *parts), channels, 1)


def _up(net: Net, point: Point, beside: Point) -> Point:
    """Twice as large, nearest, joined with a level of that size."""
    scales = net.constant(np.float32([1, 1, 2, 2]))
    x = net("Resize", point[0], "", scales, mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric")  # fmt: skip
    return _joined(net, (x, point[1]), beside)


def _head(net: Net, point: Point, inner: int, channels: int) -> str:
    x = _block(net, _block(net, point, inner, 3), inner, 3)
    return conv(net, *x, channels, 1)


def _decoded(net: Net, levels: tuple[Point, ...], shape: tuple[int, int, int]) -> str:
    """Centres and sizes of boxes in pixels above the scores: [batch, 4 + classes, cells]."""
    batch, size, classes = shape
    inner = max(16, levels[0][1] // 4, 4 * BINS), max(levels[0][1], min(classes, 100))
    flat = []
    for level in levels:
        boxes = _head(net, level, inner[0], 4 * BINS)
        scores = _head(net, level, inner[1], classes)
        both = net("Concat", boxes, scores, axis=1)
        flat.append(net("Reshape", both, net.ints(batch, 4 * BINS + classes, -1)))
    cells, strides = _cells(size)
    found = net("Concat", *flat, axis=2)
    boxes, scores = net.many("Split", 2, found, net.ints(4 * BINS, classes), axis=1)
    sides = net("Reshape", boxes, net.ints(batch, 4, BINS, cells.shape[2]))
    sides = net("Softmax", net("Transpose", sides, perm=[0, 2, 1, 3]), axis=1)
    bins = net.constant(np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    mean = net("Reshape", net("Conv", sides, bins), net.ints(batch, 4, cells.shape[2]))
    before = net("Slice", mean, net.ints(0), net.ints(2), net.ints(1))
    after = net("Slice", mean, net.ints(2), net.ints(4), net.ints(1))
    first = net("Sub", net.constant(cells), before)
    last = net("Add", net.constant(cells), after)
    centre = net("Div", net("Add", first, last), net.scalar(2))
    box = net("Concat", centre, net("Sub", last, first), axis=1)
    return net("Concat", net("Mul", box, net.constant(strides)), net("Sigmoid", scores), axis=1)


def _cells(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres of all cells in their grid's units [1, 2, cells], and their strides [1, cells]."""
    centres, strides = [], []
    for stride in (8, 16, 32):
        length = size // stride
        y, x = np.meshgrid(np.arange(length), np.arange(length), indexing="ij")
        centres.append(np.stack((x.ravel(), y.ravel())) + 0.5)
        strides.append(np.full((1, length * length), stride))
    return (
        np.concatenate(centres, 1)[None].astype(np.float32),
        np.concatenate(strides, 1).astype(np.float32),
    )
