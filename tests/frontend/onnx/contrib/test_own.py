"""Operators of our own in a model, which other frontends write."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tightship
from tightship.engine.kernels.block_weights import BlockForm, dequantize
from tightship.errors import GraphError
from tightship.graph.row_codes import row_bytes

ROWS, DEPTH = 6, 64
RANDOM = np.random.default_rng(0)
INTEGERS = RANDOM.integers(0, 256, (ROWS, DEPTH // 2), np.uint8)
SCALES = RANDOM.uniform(0.1, 1, (ROWS, DEPTH // 32)).astype(np.float16)


def model(integers: np.ndarray = INTEGERS, scales: np.ndarray = SCALES, **changed: object) -> bytes:
    given = {"rows": ROWS, "depth": DEPTH, "bits": 4, "block_size": 32, **changed}
    nodes = [
        helper.make_node("DequantizeBlocks", ["w", "s"], ["m"], domain="tightship", **given),
        helper.make_node("Transpose", ["m"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, DEPTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        nodes, "g", [x], [y],
        [numpy_helper.from_array(integers, "w"), numpy_helper.from_array(scales, "s")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("tightship", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())


def test_blocks_are_read_as_they_are() -> None:
    x = RANDOM.standard_normal((2, DEPTH)).astype(np.float32)
    with tightship.load(model()) as loaded:
        found = loaded.run({"x": x})["y"]
    matrix = np.empty((ROWS, DEPTH), np.float32)
    dequantize(BlockForm(ROWS, DEPTH, 4, 32), INTEGERS, SCALES, None, matrix)
    np.testing.assert_allclose(found, x @ matrix.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": 7}, "integers `w` of the shape"),
        ({"mode": "fast"}, "`mode` = 'fast'"),
        ({"bits": 3}, "`bits` = 3"),
        ({"scales": SCALES.astype(np.float64)}, "integers or scales of other types"),
        ({"integers": INTEGERS.astype(np.int8)}, "integers or scales of other types"),
    ],
)
def test_operands_that_do_not_fit_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        tightship.plan(model(**changed))


def encoded_model(kind: str, stored: np.ndarray | None, **changed: object) -> bytes:
    """Return a product by encoded rows and a gather of two; rows are an input if not stored."""
    given = {"rows": ROWS, "depth": DEPTH, "type": kind, **changed}
    size = row_bytes(kind, DEPTH)
    nodes = [
        helper.make_node("DequantizeRows", ["w"], ["m"], domain="tightship", **given),
        helper.make_node("Transpose", ["m"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
        helper.make_node("Gather", ["m", "i"], ["g"], axis=0),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, [2, DEPTH]), info("i", TensorProto.INT64, [2])]
    inputs += [info("w", TensorProto.UINT8, [ROWS, size])] if stored is None else []
    outputs = [info(name, TensorProto.FLOAT, None) for name in ("y", "g")]
    held = [] if stored is None else [numpy_helper.from_array(stored, "w")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("tightship", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"type": "Q9"}, "`type` = 'Q9', which is not supported: it must be F16, BF16"),
        ({"type": "Q4_K"}, "rows of 64 elements, which is not supported: 256 must divide"),
        ({"rows": 7}, "rows `w` of the shape"),
    ],
)
def test_encoded_rows_that_do_not_fit_are_refused(changed: dict[str, object], message: str) -> None:
    stored = np.zeros((ROWS, row_bytes("Q4_1", DEPTH)), np.uint8)
    with pytest.raises(GraphError, match=message):
        tightship.plan(encoded_model("Q4_1", stored, **changed))
