"""Operands of Attention and RotaryEmbedding that do not fit each other are refused."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tightship
from tightship.errors import GraphError

BATCH, HEADS, SHARED, STEPS, KEYS, PAST, LENGTH, WIDTH = 2, 6, 3, 4, 5, 7, 8, 10
OPERANDS = {
    "q": (BATCH, HEADS, STEPS, LENGTH), "k": (BATCH, SHARED, KEYS, LENGTH),
    "v": (BATCH, SHARED, KEYS, WIDTH), "mask": (BATCH, 1, STEPS, KEYS + PAST),
    "past_key": (BATCH, SHARED, PAST, LENGTH), "past_value": (BATCH, SHARED, PAST, WIDTH),
}  # fmt: skip
FLAT = {"q": (BATCH, STEPS, 48), "k": (BATCH, KEYS, 24), "v": (BATCH, KEYS, 30)}
ROTARY = {"x": (BATCH, HEADS, STEPS, LENGTH), "c": (BATCH, STEPS, 4), "s": (BATCH, STEPS, 4)}


def node(operator: str, shapes: dict[str, tuple[int, ...]], **attributes: Any) -> bytes:
    outputs = ["y", "present_key", "present_value"] if "past_key" in shapes else ["y"]
    graph = helper.make_graph(
        [helper.make_node(operator, list(shapes), outputs, "node", **attributes)], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 24)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def run(model: bytes, shapes: dict[str, tuple[int, ...]]) -> Any:
    with tightship.load(model) as loaded:
        return loaded.run({name: np.ones(shape, np.float32) for name, shape in shapes.items()})


def test_operands_that_fit_run() -> None:
    assert run(node("Attention", OPERANDS), OPERANDS)["y"].shape == (BATCH, HEADS, STEPS, WIDTH)
    flat = node("Attention", FLAT, q_num_heads=HEADS, kv_num_heads=SHARED)
    assert run(flat, FLAT)["y"].shape == (BATCH, STEPS, HEADS * WIDTH)
    assert run(node("RotaryEmbedding", ROTARY), ROTARY)["y"].shape == ROTARY["x"]


@pytest.mark.parametrize(
    ("name", "axis", "by"),
    [
        ("k", 0, 1), ("k", 1, 1), ("k", 2, 1), ("k", 3, -1), ("v", 0, 1), ("v", 1, 1),
        ("v", 2, -1), ("v", 2, 1), ("v", 3, 1), ("mask", 0, 1), ("mask", 1, 1), ("mask", 2, -1),
        ("mask", 3, 1), ("past_key", 0, 1), ("past_key", 1, -1), ("past_key", 2, 1),
        ("past_key", 3, 1), ("past_value", 1, 1), ("past_value", 2, -1), ("past_value", 3, 1),
    ],
)  # fmt: skip
def test_an_operand_of_attention_of_another_length_is_refused(
    name: str, axis: int, by: int
) -> None:
    shape = list(OPERANDS[name])
    shape[axis] += by
    with pytest.raises(GraphError, match=r"`node` \(Attention\) cannot be typed: .*`"):
        tightship.load(node("Attention", {**OPERANDS, name: tuple(shape)}))


@pytest.mark.parametrize("heads", [(5, 3), (6, 4), (0, 3), (6, 0), (96, 3)])
def test_numbers_of_heads_that_do_not_fit_are_refused(heads: tuple[int, int]) -> None:
    with pytest.raises(GraphError, match="`node`"):
        tightship.load(node("Attention", FLAT, q_num_heads=heads[0], kv_num_heads=heads[1]))


@pytest.mark.parametrize("name", ["c", "s"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_table_of_angles_of_another_length_is_refused(name: str, axis: int, by: int) -> None:
    shape = list(ROTARY[name])
    shape[axis] += by
    with pytest.raises(GraphError, match=r"`node` \(RotaryEmbedding\) cannot be typed"):
        tightship.load(node("RotaryEmbedding", {**ROTARY, name: tuple(shape)}))


PARAMETERS: dict[str, tuple[str, dict[str, tuple[int, ...]], str, dict[str, Any]]] = {
    "slope": ("PRelu", {"x": (2, 3, 4), "s": (3, 5)}, "s", {}),
    "slope of channels": ("PRelu", {"x": (2, 3, 4), "s": (3,)}, "s", {}),
    "wide addend": ("Gemm", {"a": (2, 3), "b": (3, 4), "c": (5,)}, "c", {}),
    "narrow addend": ("Gemm", {"a": (2, 3), "b": (4, 3), "c": (2, 3)}, "c", {"transB": 1}),
    "scale": ("LayerNormalization", {"x": (2, 8), "s": (7,)}, "s", {}),
    "shift": ("LayerNormalization", {"x": (2, 8), "s": (8,), "b": (9,)}, "b", {}),
    "root scale": ("RMSNormalization", {"x": (2, 8), "s": (9,)}, "s", {}),
    "bias": ("Conv", {"x": (1, 3, 8, 8), "w": (4, 3, 3, 3), "b": (3,)}, "b", {}),
    "window": ("Conv", {"x": (1, 3, 8, 8), "w": (4, 3, 2, 3)}, "w", {"kernel_shape": [3, 3]}),
    "turned bias": (
        "ConvTranspose", {"x": (1, 4, 8, 8), "w": (4, 3, 3, 3), "b": (5,)}, "b", {"group": 2},
    ),
    "channels": ("Conv", {"x": (1, 3, 8, 8), "w": (4, 2, 3, 3)}, "x", {}),
    "channels of groups": ("Conv", {"x": (1, 4, 8, 8), "w": (4, 3, 3, 3)}, "x", {"group": 2}),
    "groups": ("Conv", {"x": (1, 4, 8, 8), "w": (3, 2, 3, 3)}, "w", {"group": 2}),
    "turned channels": ("ConvTranspose", {"x": (1, 3, 8, 8), "w": (4, 3, 3, 3)}, "x", {}),
    "mean": (
        "BatchNormalization", {"x": (2, 3, 4), "s": (3,), "b": (3,), "m": (4,), "v": (3,)}, "m", {},
    ),
    "group": ("GroupNormalization", {"x": (2, 6, 4), "s": (3,), "b": (6,)}, "s", {"num_groups": 3}),
    "instance": ("InstanceNormalization", {"x": (2, 6, 4), "s": (6,), "b": (5,)}, "b", {}),
    "no axis": ("LpNormalization", {"x": ()}, "x", {}),
    "order": ("Transpose", {"x": (2, 3, 4)}, "x", {"perm": [0, 2]}),
    "boxes": ("MaxRoiPool", {"x": (1, 3, 8, 8), "r": (2, 4)}, "r", {"pooled_shape": [2, 2]}),
    "scale of an axis": ("QuantizeLinear", {"x": (2, 3, 4), "s": (4,)}, "s", {"axis": 1}),
    "scales of two axes": ("QuantizeLinear", {"x": (2, 3, 4), "s": (2, 3)}, "s", {}),
    "scales of blocks": (
        "QuantizeLinear", {"x": (2, 6), "s": (2, 3)}, "s", {"axis": 1, "block_size": 3},
    ),
    "limit": ("Clip", {"x": (2, 3), "low": (3,)}, "low", {}),
}  # fmt: skip


@pytest.mark.parametrize("case", PARAMETERS.values(), ids=list(PARAMETERS))
def test_a_parameter_of_another_length_is_refused(
    case: tuple[str, dict[str, tuple[int, ...]], str, dict[str, Any]],
) -> None:
    operator, shapes, name, attributes = case
    with pytest.raises(GraphError, match=rf"`node` \({operator}\) cannot be typed: .*`{name}`"):
        tightship.load(node(operator, shapes, **attributes))


def test_indices_that_do_not_fit_their_data_are_refused() -> None:
    opsets = [helper.make_opsetid("", 13)]
    for operator, data, indices, more in (
        ("GatherND", (2, 3), (2, 1, 1), {"batch_dims": 2}),
        ("GatherND", (2, 3), (4, 3), {}),
        ("GatherElements", (2, 3), (2, 4), {"axis": 0}),
        ("GatherElements", (2, 3), (2,), {"axis": 0}),
    ):
        graph = helper.make_graph(
            [helper.make_node(operator, ["x", "i"], ["y"], "node", **more)], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, data),
             helper.make_tensor_value_info("i", TensorProto.INT64, indices)],
            [onnx.ValueInfoProto(name="y")],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        with pytest.raises(GraphError, match=rf"`node` \({operator}\) cannot be typed"):
            tightship.load(model.SerializeToString())


def test_an_axis_that_opset_13_does_not_split_evenly_is_found_when_a_run_gives_it() -> None:
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["y", "z"], "node")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [onnx.ValueInfoProto(name=name) for name in ("y", "z")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    with tightship.load(model, shapes={"x": (6,)}) as loaded:
        assert loaded.run({"x": np.ones(8, np.float32)})["z"].shape == (4,)
        with pytest.raises(GraphError, match=r"`node` \(Split\) cannot be typed"):
            loaded.run({"x": np.ones(7, np.float32)})


def test_lengths_that_do_not_fit_are_found_when_a_run_gives_them() -> None:
    names = {"x": ["n", "c", 8, 8], "w": [4, 3, 3, 3], "b": ["m"]}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], "node")], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in names.items()],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 24)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    weights = {"w": np.ones((4, 3, 3, 3), np.float32), "b": np.ones(4, np.float32)}
    shapes = {"x": (1, 3, 8, 8), "b": (4,)}
    with tightship.load(model, shapes=shapes) as loaded:
        loaded.run({"x": np.ones((2, 3, 8, 8), np.float32), **weights})
        with pytest.raises(GraphError, match=r"`node` \(Conv\) cannot be typed: `x` has the shape"):
            loaded.run({"x": np.ones((2, 4, 8, 8), np.float32), **weights})
        with pytest.raises(GraphError, match=r"`node` \(Conv\) cannot be typed: `b` has the shape"):
            loaded.run({"x": np.ones((2, 3, 8, 8), np.float32), **weights, "b": weights["b"][:3]})
