"""Gradients of scales and real zero points, against sums in float64."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.engine.graphs import run
from tests.frontend.onnx.contrib.case import integers, normal
from tightship.engine.kernels.block_weights import BlockForm, dequantize
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import backward


def summed_product(depth, given, stored):
    """Write a model that sums a product by blocks; scales and real zero points are inputs."""
    names = ["x", "w", "s", *(["z"] if "z" in given | stored else [])]
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", K=depth, N=6,
                            bits=4, block_size=16)  # fmt: skip
    total = helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0)
    graph = helper.make_graph(
        [node, total], "g",
        [helper.make_tensor_value_info(n, 1, each.shape) for n, each in given.items()],
        [helper.make_tensor_value_info("sum", 1, [])],
        [numpy_helper.from_array(each, n) for n, each in stored.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("zeros", ["none", "bytes", "real"])
@pytest.mark.parametrize("depth", [32, 40])
def test_scales_and_real_zero_points_have_their_slopes(depth, zeros):
    form = BlockForm(6, depth, 4, 16)
    raw, scales = integers(np.uint8, 6, form.blocks, 8), normal(6, form.blocks)
    x = normal(3, depth)
    points = {"bytes": integers(np.uint8, 6, form.zero_bytes), "real": normal(6, form.blocks)}
    stored = {"w": raw} | ({"z": points["bytes"]} if zeros == "bytes" else {})
    given = {"x": x, "s": scales} | ({"z": points["real"]} if zeros == "real" else {})
    made = summed_product(depth, given, stored)
    wanted = [name for name in given if name != "x"]
    found = backward(read_bytes(made), ["sum"], wanted)
    feeds = {name: given.get(name, np.float32(1)) for name in found.inputs}
    results = run(found, inputs=feeds)
    whole = np.empty((6, depth), np.float32)
    zero = points.get(zeros)
    dequantize(form, raw, np.ones_like(scales), zero, whole)
    inner = np.broadcast_to(x.sum(0, dtype=np.float64), (6, depth))
    edges = range(0, depth, 16)
    slopes = {"s": np.add.reduceat(inner * whole, edges, axis=1)}
    slopes["z"] = -np.add.reduceat(inner, edges, axis=1) * scales
    for name in wanted:
        np.testing.assert_allclose(results[f"d({name})"], slopes[name], rtol=1e-4, atol=1e-4)
