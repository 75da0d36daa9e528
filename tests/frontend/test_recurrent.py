"""Recurrent layers whose operands do not fit each other are refused, before a kernel writes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tightship
from tightship.errors import GraphError

STEPS, BATCH, WIDTH, HIDDEN = 5, 2, 3, 4
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def layer(operator: str, shapes: dict[str, tuple[int, ...]], **attributes: Any) -> bytes:
    """A layer of two directions whose operands are all there, some of other shapes."""
    rows = GATES[operator] * HIDDEN
    known = {
        "x": (STEPS, BATCH, WIDTH), "w": (2, rows, WIDTH), "r": (2, rows, HIDDEN),
        "b": (2, 2 * rows), "lengths": (BATCH,), "h": (2, BATCH, HIDDEN),
        **({"c": (2, BATCH, HIDDEN), "p": (2, 3 * HIDDEN)} if operator == "LSTM" else {}),
        **shapes,
    }  # fmt: skip
    weights = [n for n in known if n in "wrbp"]
    node = helper.make_node(
        operator, list(known), ["y", "last"], "layer",
        **{"direction": "bidirectional", "hidden_size": HIDDEN, **attributes},
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, 6 if n == "lengths" else TensorProto.FLOAT, shape)
         for n, shape in known.items() if n not in weights],
        [onnx.ValueInfoProto(name=name) for name in ("y", "last")],
        [numpy_helper.from_array(np.ones(known[n], np.float32), n) for n in weights],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("operator", GATES)
def test_operands_that_fit_are_taken(operator: str) -> None:
    model = layer(operator, {})
    assert tightship.plan(model).is_exact


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("name", ["x", "w", "r", "b", "lengths", "h"])
@pytest.mark.parametrize("axis", [0, -1])
def test_an_operand_of_another_length_is_refused(operator: str, name: str, axis: int) -> None:
    shape = {
        "x": [STEPS, BATCH, WIDTH], "w": [2, GATES[operator] * HIDDEN, WIDTH],
        "r": [2, GATES[operator] * HIDDEN, HIDDEN], "b": [2, 2 * GATES[operator] * HIDDEN],
        "lengths": [BATCH], "h": [2, BATCH, HIDDEN],
    }[name]  # fmt: skip
    shape[axis] += 1
    if (name, axis) == ("x", 0):
        assert tightship.plan(
            layer(operator, {name: tuple(shape)})
        ).is_exact  # as many steps as any
        return
    with pytest.raises(GraphError, match=rf"`layer` \({operator}\) cannot be typed"):
        tightship.plan(layer(operator, {name: tuple(shape)}))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"hidden_size": 16}, "hidden_size is 16"),
        ({"hidden_size": 1}, "hidden_size is 1"),
        ({"direction": "forward"}, r"`w` has the shape \[2, 12, 3\]"),
        ({"direction": "sideways"}, "direction='sideways'"),
        ({"layout": 2}, "layout=2"),
        ({"layout": 1}, "`lengths` has the shape"),
    ],
)
def test_an_attribute_against_the_weights_is_refused(
    attributes: dict[str, Any], words: str
) -> None:
    with pytest.raises(GraphError, match=words):
        tightship.load(layer("GRU", {}, **attributes))
