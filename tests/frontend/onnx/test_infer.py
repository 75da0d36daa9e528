from dataclasses import replace

import numpy as np
import pytest
from onnx import helper, parser

from tightship.frontend.onnx import types
from tightship.frontend.onnx.infer import Inference, InferenceCall
from tightship.frontend.onnx.schema import Opsets, Schemas, read_opsets
from tightship.graph import DType, Inline

IR_VERSION = 8


def opsets(version: int = 18) -> Opsets:
    return read_opsets([helper.make_opsetid("", version)], "The model")


OPSETS = opsets()
SCHEMAS = Schemas()
FEW = types.tensor_type(DType.FLOAT32, (2, 3))
MANY = types.tensor_type(DType.FLOAT32, (2, 5))


def call(text: str, data: dict[str, list[int]] | None = None) -> InferenceCall:
    """A node whose inputs called `few` and `many` have those types, and others known values."""
    node = parser.parse_node(text)
    known = {name: Inline(np.array(value, np.int64)) for name, value in (data or {}).items()}
    inputs = {name: MANY if name.startswith("many") else FEW for name in node.input if name}
    inputs |= {name: types.constant_type(value.dtype, value.shape) for name, value in known.items()}
    return InferenceCall(node, SCHEMAS.find(node, "", OPSETS), inputs, known, "Node")


def test_nodes_that_differ_in_names_alone_have_the_same_types_as_objects() -> None:
    inference = Inference(IR_VERSION)
    (first,) = inference.outputs(call("y = Reshape(few1, to)", {"to": [3, 2]}), OPSETS)
    (second,) = inference.outputs(call("z = Reshape(few2, shape)", {"shape": [3, 2]}), OPSETS)
    assert first is second
    assert types.shape_of(first) == (3, 2)


def test_a_node_is_inferred_once() -> None:
    inference = Inference(IR_VERSION)
    first, second = (
        inference.outputs(call(text), OPSETS) for text in ("y = Relu(few1)", "z = Relu(few2)")
    )
    assert first is second


def test_equal_types_of_different_nodes_are_one_object() -> None:
    inference = Inference(IR_VERSION)
    (first,) = inference.outputs(call("y = Relu(few)"), OPSETS)
    (second,) = inference.outputs(call("y = Sigmoid(few)"), OPSETS)
    assert first is second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call("y = Transpose(few)"), call("y = Relu(few)")),
        (call("y = Transpose(few)"), call("y = Transpose(many)")),
        (call("y = Transpose(few)"), call("y = Transpose <perm = [0, 1]> (few)")),
        (
            call("y = Reshape(few, to)", {"to": [6, 1]}),
            call("y = Reshape(few, to)", {"to": [1, 6]}),
        ),
        (call("y = Dropout(few)"), call("y, mask = Dropout(few)")),
    ],
    ids=["operator", "input", "attribute", "value", "outputs"],
)
def test_nodes_that_differ_are_inferred_apart(one: InferenceCall, other: InferenceCall) -> None:
    inference = Inference(IR_VERSION)
    found = [inference.outputs(call, OPSETS) for call in (one, other)]
    assert found[0] != found[1]
    assert found == [Inference(IR_VERSION).outputs(call, OPSETS) for call in (one, other)]


def test_opsets_are_distinguished() -> None:
    inference = Inference(IR_VERSION)
    node = call("y, mask = Dropout(few)")
    old = opsets(6)
    older = replace(node, schema=SCHEMAS.find(node.node, "", old))
    _, mask = inference.outputs(node, OPSETS)
    _, old_mask = inference.outputs(older, old)
    assert mask.tensor_type.elem_type == 9
    assert old_mask.tensor_type.elem_type == 1
