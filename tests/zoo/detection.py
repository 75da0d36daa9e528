"""A detector as PyTorch exports it: the best of each class above a threshold, and suppression."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from tests.zoo.efficient import relu6
from tests.zoo.net import Case, Net


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a detector."""

    image: int = 320
    width: int = 32
    depth: int = 4
    classes: int = 21
    anchors: int = 6
    candidates: int = 300
    kept: int = 200


def ssdlite(batch: int = 1, sizes: Sizes | None = None) -> Case:
    """Depthwise backbone, heads on three levels, and as many detections as there are."""
    assert batch == 1
    sizes = sizes or Sizes()
    net = Net(21)
    boxes, scores = _scored(net, sizes)
    net.output(*_detections(net, boxes, scores, sizes))
    return net.case()


def ssdlite_scores(batch: int = 1, sizes: Sizes | None = None) -> Case:
    """The same network up to its boxes and scores, all of whose shapes are known."""
    assert batch == 1
    net = Net(21)
    net.output(*_scored(net, sizes or Sizes()))
    return net.case()


def _scored(net: Net, sizes: Sizes) -> tuple[str, str]:
    x = net.normal("image", 1, 3, sizes.image, sizes.image)
    x, channels = _convolved(net, x, 3, sizes.width, 2), sizes.width
    levels = []
    for level in range(sizes.depth):
        x = _separable(net, x, channels, 2 * channels, 2)
        channels *= 2
        x = _separable(net, x, channels, channels, 1)
        if level >= sizes.depth - 3:
            levels.append((x, channels, sizes.image // 4 // 2**level))
    heads = [_head(net, *level, sizes) for level in levels]
    logits, places = (net("Concat", *each, axis=1) for each in zip(*heads, strict=True))
    count = sum(side * side * sizes.anchors for _, _, side in levels)
    boxes = _decoded(net, net("Squeeze", places, net.ints(0)), count, sizes.image)
    return boxes, net("Squeeze", net("Softmax", logits, axis=-1), net.ints(0))


def _convolved(net: Net, x: str, before: int, after: int, stride: int, kernel: int = 3) -> str:
    pads = [kernel // 2] * 4
    weight = net.weight(after, before, kernel, kernel)
    return relu6(net, net("Conv", x, weight, net.bias(after), strides=[stride] * 2, pads=pads))


def _separable(net: Net, x: str, before: int, after: int, stride: int) -> str:
    weight = net.weight(before, 1, 3, 3)
    x = net("Conv", x, weight, net.bias(before), group=before, strides=[stride] * 2, pads=[1] * 4)
    return _convolved(net, relu6(net, x), before, after, 1, kernel=1)


def _head(net: Net, x: str, channels: int, side: int, sizes: Sizes) -> tuple[str, str]:
    """Class logits (1, anchors, classes) and box deltas (1, anchors, 4) of a level."""
    found = []
    for each in (sizes.classes, 4):
        weight = net.weight(sizes.anchors * each, channels, 1, 1)
        y = net("Conv", x, weight, net.bias(sizes.anchors * each))
        y = net("Reshape", y, net.ints(1, sizes.anchors, each, side, side))
        y = net("Transpose", y, perm=[0, 3, 4, 1, 2])
        found.append(net("Reshape", y, net.ints(1, side * side * sizes.anchors, each)))
    return found[0], found[1]


def _decoded(net: Net, deltas: str, count: int, side: int) -> str:
    """Corners (anchors, 4) of boxes within the image, from deltas to anchors."""
    centre = net.random.uniform(0, side, (count, 2)).astype(np.float32)
    extent = net.random.uniform(side / 16, side / 3, (count, 2)).astype(np.float32)
    moves, growths = net.many("Split", 2, deltas, net.ints(2, 2), axis=1)
    scale = net.constant(extent)
    middle = net("Add", net("Mul", net("Mul", moves, net.scalar(0.1)), scale), net.constant(centre))
    growth = net("Min", net("Mul", growths, net.scalar(0.2)), net.scalar(1.0))
    half = net("Mul", net("Mul", net("Exp", growth), scale), net.scalar(0.5))
    corners = net("Concat", net("Sub", middle, half), net("Add", middle, half), axis=1)
    return net("Clip", corners, net.scalar(0), net.scalar(side))


def _detections(net: Net, boxes: str, scores: str, sizes: Sizes) -> tuple[str, str, str]:
    """Boxes, scores and labels of what is kept of the best candidates of each class."""
    parts: list[tuple[str, str, str]] = []
    for label in range(1, sizes.classes):
        own = net("Gather", scores, net.constant(np.int64(label)), axis=1)
        likely = net("Greater", own, net.scalar(1.2 / sizes.classes))
        index = net("Squeeze", net("NonZero", likely), net.ints(0))
        chosen, among = net("Gather", own, index, axis=0), net("Gather", boxes, index, axis=0)
        size = net("Shape", chosen)
        most = net("Min", size, net.ints(sizes.candidates))
        best, order = net.many("TopK", 2, chosen, most, axis=0)
        ones = net("ConstantOfShape", net("Shape", best), value=_int64(label))
        parts.append((net("Gather", among, order, axis=0), best, ones))
    found, best, labels = (net("Concat", *each, axis=0) for each in zip(*parts, strict=True))
    keep = net("If", _is_empty(net, best), **_branches(net, found, best, labels))
    keep = net("Slice", keep, net.ints(0), net.ints(sizes.kept), net.ints(0))
    return tuple(net("Gather", each, keep, axis=0) for each in (found, best, labels))


def _int64(value: int) -> TensorProto:
    return helper.make_tensor("value", TensorProto.INT64, [1], [value])


def _is_empty(net: Net, x: str) -> str:
    return net("Equal", net("Size", x), net.constant(np.int64(0)))


def _branches(net: Net, boxes: str, scores: str, labels: str) -> dict[str, object]:
    """No boxes, or suppression of boxes that are moved apart by their labels."""
    node = helper.make_node
    overlap, most = net.constant(np.float32([0.55])), net.ints(2**40)
    zero, one, two = net.ints(0), net.ints(1), net.ints(2)
    empty = helper.make_tensor("none", TensorProto.INT64, [0], [])
    out = helper.make_tensor_value_info
    suppressed = [
        node("ReduceMax", [boxes], ["farthest"], keepdims=0),
        node("Cast", [labels], ["floats"], to=TensorProto.FLOAT),
        node("Add", ["farthest", net.scalar(1)], ["apart"]),
        node("Mul", ["floats", "apart"], ["shift"]),
        node("Unsqueeze", ["shift", one], ["column"]),
        node("Add", [boxes, "column"], ["moved"]),
        node("Unsqueeze", ["moved", zero], ["images"]),
        node("Unsqueeze", [scores, zero], ["of_image"]),
        node("Unsqueeze", ["of_image", zero], ["of_class"]),
        node("NonMaxSuppression", ["images", "of_class", most, overlap], ["rows"]),
        node("Gather", ["rows", two], ["places"], axis=1),
        node("Squeeze", ["places", one], ["kept"]),
    ]
    return {
        "then_branch": helper.make_graph(
            [node("Constant", [], ["nothing"], value=empty)], "empty", [],
            [out("nothing", TensorProto.INT64, ["n"])],
        ),
        "else_branch": helper.make_graph(
            suppressed, "suppressed", [], [out("kept", TensorProto.INT64, ["n"])]
        ),
    }  # fmt: skip
