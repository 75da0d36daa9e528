"""Models that the soak test serves: each adds one to its input `x`, but the slow one."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FAST, LARGE, SLOW, TEXT = "fast", "large", "slow", "text"
FAST_SHAPE, LARGE_SHAPE = (1, 1024), (1, 1 << 20)
SLOW_SIDE = 512
SLOW_SHAPE = (1, SLOW_SIDE)
SLOW_PRODUCTS = 60

Shape = Sequence[int | str]


def write_models(folder: Path) -> None:
    """Write one with small tensors, one with large ones, a slow one, and one of open lengths."""
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    for name, shape in ((FAST, FAST_SHAPE), (LARGE, LARGE_SHAPE), (TEXT, ("batch", "length"))):
        add = helper.make_node("Add", ["x", "one"], ["y"])
        _write(folder / f"{name}.onnx", shape, shape, [add], one)
    side = np.random.default_rng(0).standard_normal((SLOW_SIDE, SLOW_SIDE), np.float32)
    names = [*(f"v{index}" for index in range(SLOW_PRODUCTS)), "y"]
    nodes = [
        helper.make_node("Add", ["x", "side"], ["v0"]),
        *(helper.make_node("MatMul", [x, "side"], [y]) for x, y in pairwise(names)),
    ]
    side = numpy_helper.from_array(side / SLOW_SIDE, "side")
    _write(folder / f"{SLOW}.onnx", SLOW_SHAPE, (SLOW_SIDE, SLOW_SIDE), nodes, side)


def _write(
    path: Path, given: Shape, made: Shape, nodes: list[onnx.NodeProto], weight: onnx.TensorProto
) -> None:
    """Write a model with input `x`, output `y` and one weight."""
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", given), ("y", made))
    ]
    graph = helper.make_graph(nodes, path.stem, *ends, [weight])
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
