"""Constants in blocks keep the bytes of the file, or pack its elements once."""

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper

import tightship
from tests.frontend.onnx.contrib.case import normal
from tightship.engine.lower.passes.block_weights import block_weights
from tightship.engine.lower.passes.blocks import BlockWeights
from tightship.engine.lower.passes.fold_constants import fold_constants
from tightship.engine.lower.passes.widened import widened
from tightship.frontend.onnx import read
from tightship.graph import DType, Inline, Mapped, Node

TYPES = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int8": np.int8, "uint8": np.uint8}
LIMITS = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}


def drawn(kind, *shape):
    random = np.random.default_rng(4)
    return random.integers(*LIMITS[kind], shape).astype(np.int16).astype(TYPES[kind])


def real(weights, scales, zeros, block, axis):
    if block is None:
        spread = [np.expand_dims(each.astype(np.float32), 1 - axis) for each in (scales, zeros)]
        return (weights.astype(np.float32) - spread[1]) * spread[0]
    spread = [np.repeat(each.astype(np.float32), block, axis) for each in (scales, zeros)]
    return (weights.astype(np.float32) - spread[1]) * spread[0]


def qdq(kind, axis, *, zeros, operator, shape=(96, 64), block=32, steps=2, half=False):
    """A model that dequantizes weights in blocks for one operator; returns model, weights.

    With `block` of None, they have a scale for each index of the axis.
    """
    weights = drawn(kind, *shape)
    blocks = [shape[axis]] if block is None else [
        length // block if place == axis else length for place, length in enumerate(shape)
    ]  # fmt: skip
    scales = np.abs(normal(*blocks)).astype(np.float16 if half else np.float32)
    origin = drawn(kind, *blocks) if zeros else np.zeros(blocks, TYPES[kind])
    tensors = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")]
    names = ["w", "s"]
    if zeros:
        tensors.append(numpy_helper.from_array(origin, "z"))
        names.append("z")
    size = {} if block is None else {"block_size": block}
    nodes = [helper.make_node("DequantizeLinear", names, ["real"], axis=axis, **size)]
    number = 10 if half else 1
    depth = shape[1 - (operator != "Transpose")] if operator != "Gather" else 0
    if operator == "Transpose":
        nodes += [helper.make_node("Transpose", ["real"], ["turned"], perm=[1, 0]),
                  helper.make_node("MatMul", ["x", "turned"], ["y"])]  # fmt: skip
        depth = shape[1]
    elif operator == "MatMul":
        nodes.append(helper.make_node("MatMul", ["x", "real"], ["y"]))
        depth = shape[0]
    elif operator == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "real", "b"], ["y"], transB=1))
        tensors.append(numpy_helper.from_array(np.ones(shape[0], scales.dtype), "b"))
        depth = shape[1]
    else:
        nodes.append(helper.make_node("Gather", ["real", "x"], ["y"]))
    x = helper.make_tensor_value_info("x", 7 if operator == "Gather" else number,
                                      ["n"] if operator == "Gather" else ["n", depth])  # fmt: skip
    y = helper.make_tensor_value_info("y", number, None)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    opset = 13 if block is None and kind.endswith("8") and not half else 21
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    if operator == "Gather":
        feed = np.array([0, shape[0] - 1, -1, 5])[:steps]
    else:
        feed = normal(steps, depth).astype(scales.dtype)
    return model, feed, real(weights, scales, origin, block, axis)


def wanted(operator, x, matrix):
    if operator == "Gather":
        return matrix[x]
    product = x.astype(np.float64) @ (matrix if operator == "MatMul" else matrix.T)
    return product + (operator == "Gemm")


PRODUCTS = [("MatMul", 0), ("MatMul", -2), ("Transpose", 1), ("Gemm", 1)]
GATHERS = [("Gather", 1), ("Gather", -1)]


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("operator", "axis", "half"),
    [*((*each, False) for each in PRODUCTS + GATHERS), *((*each, True) for each in PRODUCTS)],
)
@pytest.mark.parametrize("kind", TYPES)
def test_integers_in_blocks_are_read(kind, operator, axis, zeros, half, tmp_path):
    model, x, matrix = qdq(kind, axis % 2, zeros=zeros, operator=operator, half=half)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with tightship.load(path, shapes={"x": x.shape}) as loaded:
        names = [step.implementation for step in loaded.plan.steps]
        assert ("block_gather" if operator == "Gather" else "block_product") in names
        held = loaded.plan.weights_bytes
        result = loaded.run({"x": x})["y"]
    bits = 4 if kind.endswith("4") else 8
    blocks = matrix.size // 32
    assert held <= matrix.size * bits // 8 + blocks * (4 + 1) + 64 * 6 + 4 * matrix.shape[0]
    truth = wanted(operator, x, matrix)
    error = np.abs(result - truth).max() / np.abs(truth).max()
    assert error < (2e-3 if half else 1e-5)


CHANNELS = [("MatMul", 1), ("Transpose", 0), ("Gemm", 0), ("Gather", 0)]


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("operator", "axis", "half"),
    [*((*each, False) for each in CHANNELS), *((*each, True) for each in CHANNELS[:3])],
)
@pytest.mark.parametrize("kind", TYPES)
def test_integers_with_a_scale_for_each_channel_are_read(
    kind, operator, axis, zeros, half, tmp_path
):
    """A product that sums along the channels' own elements reads the integers, not real numbers."""
    shape = (320, 192) if operator == "MatMul" else (192, 320)
    model, x, matrix = qdq(
        kind, axis, zeros=zeros, operator=operator, shape=shape, block=None, half=half
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with tightship.load(path, shapes={"x": x.shape}) as loaded:
        names = [step.implementation for step in loaded.plan.steps]
        assert ("block_gather" if operator == "Gather" else "block_product") in names
        held = loaded.plan.weights_bytes
        result = loaded.run({"x": x})["y"]
    if operator != "Gemm":  # whose bias is as large as the scales
        assert held <= 1.05 * path.stat().st_size
    truth = wanted(operator, x, matrix)
    error = np.abs(result - truth).max() / np.abs(truth).max()
    assert error < (2e-3 if half else 1e-6)


@pytest.mark.parametrize(("axis", "shape"), [(0, (96, 64)), (1, (40, 64))])
def test_scales_across_the_sums_become_real_numbers(axis, shape):
    """A scale for each summed element, or channels of elements that no block divides."""
    model, x, matrix = qdq("int8", axis, zeros=True, operator="MatMul", shape=shape, block=None)
    with tightship.load(model.SerializeToString(), shapes={"x": x.shape}) as loaded:
        assert not any("block" in step.implementation for step in loaded.plan.steps)
        result = loaded.run({"x": x})["y"]
    np.testing.assert_allclose(result, wanted("MatMul", x, matrix), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "shape", "block", "axis"),
    [("uint4", (96, 64), 8, 1), ("uint4", (96, 72), 24, 1), ("uint8", (7, 33), 3, 1)],
)
def test_other_blocks_become_real_numbers(kind, shape, block, axis):
    model, x, matrix = qdq(kind, axis, zeros=True, operator="Transpose", shape=shape, block=block)
    with tightship.load(model.SerializeToString(), shapes={"x": x.shape}) as loaded:
        assert not any("block" in step.implementation for step in loaded.plan.steps)
        result = loaded.run({"x": x})["y"]
    np.testing.assert_allclose(result, wanted("Transpose", x, matrix), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", TYPES)
def test_the_bytes_of_rows_are_the_files(kind, tmp_path):
    model, _, _ = qdq(kind, 1, zeros=False, operator="Transpose", shape=(96, 256))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    graph = fold_constants(read(path, shapes={"x": (2, 256)}))
    (found,) = [c for c in graph.constants.values() if isinstance(c, BlockWeights)]
    assert isinstance(found.blocks.integers, Mapped)
    stored = next(t for t in model.graph.initializer if t.name == "w")
    assert found.blocks.integers.array().tobytes() == stored.raw_data


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", [(32, 5), (64, 33), (4096, 70)])
def test_columns_are_packed_as_rows(kind, shape):
    """A matrix larger than what is packed at once is packed the same."""
    weights = drawn(kind, *shape)
    scales = np.ones((shape[0] // 32, shape[1]), np.float32)
    node = Node("d", "DequantizeLinear", ("w", "s"), ("y",), {"axis": 0, "block_size": 32})
    found = block_weights(node, [Inline(weights), Inline(scales)], DType.FLOAT32)
    assert found is not None
    assert found.is_turned
    assert found.blocks.integers.shape == (shape[1], shape[0] * (4 if kind[-1] == "4" else 8) // 8)
    np.testing.assert_array_equal(found.array(), weights.astype(np.float32))


@pytest.mark.parametrize("zeros", [None, DType.UINT8, DType.FLOAT32])
def test_scales_that_were_converted_are_read_as_stored(zeros: DType | None) -> None:
    """A Cast of float16 scales is left out, unless zero points are reals of another type."""
    rows, blocks, size = 6, 3, 32
    random = np.random.default_rng(4)
    integers = Inline(random.integers(0, 256, (rows, blocks, size // 2), np.uint8))
    scales = Inline(random.standard_normal(rows * blocks).astype(np.float16))
    shape = (rows, 2) if zeros is DType.UINT8 else (rows, blocks)
    points = [] if zeros is None else [Inline(np.ones(shape, zeros.numpy))]
    attributes = {"rows": rows, "depth": blocks * size, "bits": 4, "block_size": size,
                  "mode": "exact"}  # fmt: skip
    node = Node("n", "DequantizeBlocks", ("q", "s", "z"), ("w",), attributes, "tightship")
    found, plain = (
        block_weights(node, [integers, each, *points], DType.FLOAT32)
        for each in (widened(scales), Inline(scales.value.astype(np.float32)))
    )
    assert found.blocks.scales.dtype is (DType.FLOAT32 if zeros is DType.FLOAT32 else DType.FLOAT16)
    assert found.blocks.scales.shape == (rows, blocks)
    np.testing.assert_array_equal(found.array(), plain.array())
