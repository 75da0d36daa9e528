"""Networks whose shapes depend on data, and that branch, loop, and hold sequences and strings."""

import numpy as np
from onnx import TensorProto, helper

from tests.zoo.net import Case, Net


def detections() -> Case:
    """Boxes suppressed by score, the best of them gathered, what is not zero found."""
    net = Net(9)
    corners = net.random.random((1, 20, 2)).astype(np.float32)
    sizes = 0.1 + 0.3 * net.random.random((1, 20, 2)).astype(np.float32)
    boxes = net.input("boxes", np.concatenate((corners, corners + sizes), axis=2))
    scores = net("Sigmoid", net.normal("scores", 1, 3, 20))
    few = net.ints(5)
    iou, least = (net.constant(np.float32([limit])) for limit in (0.4, 0.3))
    chosen = net("NonMaxSuppression", boxes, scores, few, iou, least)
    place = net("Gather", chosen, net.ints(2), axis=1)
    kept = net("Gather", boxes, net("Squeeze", place, net.ints(1)), axis=1)
    best, where = net.many("TopK", 2, scores, net.ints(4), axis=2)
    found = net("NonZero", net("Greater", scores, net.scalar(0.5)))
    net.output(chosen, kept, best, where, found, net("Shape", found))
    return net.case()


def branches() -> Case:
    """An If on the sign of a mean, whose branches read the graph around them."""
    net = Net(10)
    x = net.normal("x", 2, 6)
    y = net("Relu", x)
    positive = net("Greater", net("ReduceMean", x, keepdims=0), net.scalar(0))
    double = _body("double", helper.make_node("Add", [y, y], ["then"]), "then", (2, 6))
    negate = _body("negate", helper.make_node("Sub", [x, y], ["else"]), "else", (2, 6))
    z = net("If", positive, then_branch=double, else_branch=negate)
    net.output(net("Softmax", net("MatMul", z, net.weight(6, 4))), y)
    return net.case()


def _body(name, node, output, shape):
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
    return helper.make_graph([node], name, [], [value])


def loops() -> Case:
    """A Loop that adds and keeps each sum, and a Scan of running products."""
    net = Net(11)
    x = net.normal("x", 3, 4)
    info = helper.make_tensor_value_info
    added = helper.make_graph(
        [
            helper.make_node("Add", ["sum", x], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Identity", ["next"], ["kept"]),
        ],
        "added",
        [
            info("i", TensorProto.INT64, ()),
            info("go", TensorProto.BOOL, ()),
            info("sum", TensorProto.FLOAT, (3, 4)),
        ],
        [
            info("on", TensorProto.BOOL, ()),
            info("next", TensorProto.FLOAT, (3, 4)),
            info("kept", TensorProto.FLOAT, (3, 4)),
        ],
    )
    times, always = net.constant(np.int64(5)), net.constant(np.bool_(True))
    total, sums = net.many("Loop", 2, times, always, net("Neg", x), body=added)
    scanned = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "row"], ["after"]),
            helper.make_node("Identity", ["after"], ["each"]),
        ],
        "scanned",
        [info("state", TensorProto.FLOAT, (4,)), info("row", TensorProto.FLOAT, (4,))],
        [info("after", TensorProto.FLOAT, (4,)), info("each", TensorProto.FLOAT, (4,))],
    )
    start = net.constant(np.ones(4, np.float32))
    end, each = net.many("Scan", 2, start, total, num_scan_inputs=1, body=scanned)
    net.output(total, sums, end, net("Relu", each))
    return net.case()


def sequences() -> Case:
    """A tensor split into a sequence, one part read back, all of it joined, its length."""
    net = Net(12)
    x = net("Exp", net.normal("x", 6, 4))
    parts = net("SplitToSequence", x, net.ints(1, 2, 3), axis=0)
    middle = net("SequenceAt", parts, net.constant(np.int64(1)))
    joined = net("ConcatFromSequence", parts, axis=0)
    net.output(middle, net("Add", joined, x), net("SequenceLength", parts))
    return net.case()


def strings() -> Case:
    """Words joined and compared, beside numbers."""
    net = Net(13)
    words = net.input("words", np.array(["tight", "ship", "plan"], object))
    ends = net.constant(np.array(["ly", "ping", "ned"], object))
    joined = net("StringConcat", words, ends)
    same = net("Equal", words, net.constant(np.array(["tight", "plan", "plan"], object)))
    x = net.normal("x", 3)
    net.output(joined, net("Where", same, x, net("Neg", x)), net("Identity", joined))
    return net.case()
