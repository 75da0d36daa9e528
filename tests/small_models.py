"""Small ONNX models as bytes, built with onnx.helper."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model(nodes, inputs, outputs, weights=None, opset=18):
    """Bytes of a model; inputs and outputs are (name, dtype, shape)."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()


def dense(batch="batch", hidden=64):
    """Two layers with a symbolic batch: y = relu(x W + b) W2."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((32, hidden), np.float32),
        "b": random.standard_normal(hidden, np.float32),
        "w2": random.standard_normal((hidden, 8), np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["y"]),
    ]
    float32 = TensorProto.FLOAT
    return model(
        nodes, [("x", float32, [batch, 32])], [("y", float32, [batch, 8])], weights
    ), weights


def cell(units=64):
    """A recurrent cell over x (1, units) and a state of that shape: next = tanh(x + state W)."""
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((units, units), np.float32) / units}
    nodes = [
        helper.make_node("MatMul", ["state", "w"], ["product"]),
        helper.make_node("Add", ["x", "product"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
    ]
    row = TensorProto.FLOAT, [1, units]
    return model(nodes, [("x", *row), ("state", *row)], [("next", *row)], weights)


def dense_result(x, weights):
    """Compute the result of `dense`."""
    return np.maximum(x @ weights["w"] + weights["b"], 0) @ weights["w2"]


def nonzero():
    """A model whose outputs depend on data: indices and their sum."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["indices"]),
        helper.make_node("Cast", ["indices"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f"], ["total"], keepdims=0),
    ]
    return model(
        nodes,
        [("x", TensorProto.FLOAT, [1000, 1000])],
        [("indices", TensorProto.INT64, [2, None]), ("total", TensorProto.FLOAT, [])],
    )


def relu_chain(length, size=1 << 20):
    """Many steps in a row, none of which can be fused: for stopping between them."""
    nodes = []
    for index in range(length):
        operator = "Sigmoid" if index % 2 else "Tanh"
        nodes.append(helper.make_node(operator, [f"v{index}"], [f"v{index + 1}"]))
    shape = [1, size]
    return model(
        nodes,
        [("v0", TensorProto.FLOAT, shape)],
        [(f"v{length}", TensorProto.FLOAT, shape)],
    )
