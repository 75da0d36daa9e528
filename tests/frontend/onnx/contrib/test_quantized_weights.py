"""Products and recurrent layers by weights stored as small integers."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import tightship
from tests.frontend.onnx.contrib.case import (
    RANDOM,
    Case,
    assert_as_onnxruntime,
    integers,
    normal,
    run,
)
from tests.processor import HAS_VNNI
from tightship.errors import GraphError, InputError

BLOCK, ROWS = 16, 6


def by_blocks(bits: int, depth: int, zeros: str, *, bias: bool = False, block: int = BLOCK) -> Case:
    """A product by ROWS rows of `depth` weights in blocks, the last of which may be cut."""
    blocks = -(-depth // block)
    given = {
        "none": None, "bytes": integers(np.uint8, ROWS * -(-blocks * bits // 8)),
        "real": np.abs(normal(ROWS * blocks)),
    }  # fmt: skip
    inputs = {
        "x": normal(2, 3, depth), "w": integers(np.uint8, ROWS, blocks, block * bits // 8),
        "scales": normal(ROWS * blocks), "zeros": given[zeros], "order": None,
        "bias": normal(ROWS) if bias else None,
    }  # fmt: skip
    attributes = {"K": depth, "N": ROWS, "bits": bits, "block_size": block}
    names = ("w", "scales", *(name for name in ("zeros", "bias") if inputs[name] is not None))
    return Case("MatMulNBits", inputs, attributes, weights=names)


@pytest.mark.parametrize("depth", [32, 40, 48])
@pytest.mark.parametrize(
    ("bits", "zeros"),
    [(4, "none"), (4, "bytes"), (4, "real"), (2, "none"), (8, "none"), (8, "bytes")],
)
def test_a_product_by_blocks_of_small_integers(bits: int, depth: int, zeros: str) -> None:
    assert_as_onnxruntime(by_blocks(bits, depth, zeros), within=1e-3)


def test_a_bias_is_added_to_a_product_by_blocks() -> None:
    assert_as_onnxruntime(by_blocks(4, 32, "bytes", bias=True), within=1e-3)


@pytest.mark.parametrize("rows", [1, 17])
@pytest.mark.parametrize("depth", [64, 104])
@pytest.mark.parametrize("zeros", ["none", "bytes", "real"])
@pytest.mark.parametrize("bits", [4, 8])
def test_activations_may_be_rounded_as_the_level_says(
    bits: int, zeros: str, depth: int, rows: int
) -> None:
    """ONNX Runtime does not take real zero points of 8 bits, and rounds for none of 4."""
    case = by_blocks(bits, depth, zeros, block=32)
    case.attributes["accuracy_level"] = 4
    case.inputs["x"] = normal(1, rows, depth)
    if (bits, zeros) == (8, "real"):
        assert len(run(case)["y"]) == 1
        return
    assert_as_onnxruntime(case, within=1e-3)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_of_a_table_of_bytes(bits: int, zeros: bool, index: Any) -> None:
    case = table_of_bytes(bits, zeros=zeros)
    case.inputs["ids"] = np.array([[4, 0, 9], [9, 1, 1]], index)
    assert_as_onnxruntime(case)


def table_of_bytes(bits: int, *, zeros: bool = True) -> Case:
    inputs = {
        "table": integers(np.uint8, 10, 8 * bits), "ids": np.array([3, 1]),
        "scales": normal(10, 4),
        "zeros": integers(np.uint8, 10, -(-4 * bits // 8)) if zeros else None,
    }  # fmt: skip
    names = ("table", "scales", *(["zeros"] if zeros else []))
    return Case("GatherBlockQuantized", inputs, {"bits": bits, "block_size": 16}, weights=names)


@pytest.mark.parametrize(("kind", "bits"), [("uint8", 4), ("uint8", 8), ("int4", 4)])
def test_rows_of_a_table_with_narrow_scales_are_read_from_integers(kind: str, bits: int) -> None:
    """Scales and rows of float16, which a Cast makes float32, take no table of real numbers."""
    table = integers(np.uint8, 1200, 8 * bits)
    if kind == "int4":
        table = RANDOM.integers(-8, 8, (1200, 64)).astype(ml_dtypes.int4)
    ids, scales = np.array([3, 1, -2]), normal(1200, 4).astype(np.float16)
    inputs = {"table": table, "ids": ids, "scales": scales}
    attributes, names = {"bits": bits, "block_size": 16}, ("table", "scales")
    case = Case("GatherBlockQuantized", inputs, attributes, weights=names, opset=21)
    assert_as_onnxruntime(case)
    model = onnx.load_from_string(case.model)
    model.graph.node.append(onnx.helper.make_node("Cast", ["y"], ["wide"], to=1))
    model.graph.output[0].name = "wide"
    with tightship.load(model.SerializeToString()) as loaded:
        assert "block_gather" in [step.implementation for step in loaded.plan.steps]
        assert loaded.plan.weights_bytes <= 1.05 * len(case.model)
        found = loaded.run({"ids": ids})["wide"]
    np.testing.assert_array_equal(found, run(case)["y"].astype(np.float32))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("gathered", "quantized"), [(0, 1), (0, -1), (1, 0), (0, 2), (2, 1)])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_rows_of_a_table_of_small_integers(
    kind: str, gathered: int, quantized: int, zeros: bool
) -> None:
    shape = (32, 32) if max(gathered, quantized) < 2 else (32, 32, 16)
    parts = [n // 16 if axis == quantized % len(shape) else n for axis, n in enumerate(shape)]
    dtype = getattr(ml_dtypes, kind)
    low = -8 if kind == "int4" else 0
    drawn = [RANDOM.integers(low, low + 16, each).astype(dtype) for each in (shape, parts)]
    inputs = {
        "table": drawn[0], "ids": np.array([5, 0, 11]), "scales": normal(*parts),
        "zeros": drawn[1] if zeros else None,
    }  # fmt: skip
    attributes = {"gather_axis": gathered, "quantize_axis": quantized, "block_size": 16}
    names = ("table", "scales", *(["zeros"] if zeros else []))
    case = Case("GatherBlockQuantized", inputs, attributes, weights=names, opset=21)
    assert_as_onnxruntime(case)


def test_an_index_beyond_a_table_is_refused_before_anything_is_written() -> None:
    case = table_of_bytes(4)
    with tightship.load(case.model) as model:
        for bad in (10, -11):
            with pytest.raises(InputError, match=r"10"):
                model.run({"ids": np.array([0, bad])})
        assert model.run({"ids": np.array([0, -1])})["y"].shape == (2, 64)


REFUSED = {
    "bits": ({"bits": 3}, {}, "`bits` = 3.*2, 4 or 8"),
    "block 0": ({"block_size": 0}, {}, "`block_size` = 0.*power of two from 16"),
    "block 48": ({"block_size": 48}, {}, "`block_size` = 48.*power of two from 16"),
    "depth": ({"K": 0}, {}, "`K` = 0.*at least 1"),
    "level": ({"accuracy_level": 5}, {}, "`accuracy_level` = 5.*0 to 4"),
    "packed": ({"weight_prepacked": 1}, {}, "`weight_prepacked` = 1.*only 0"),
    "weights": ({}, {"w": integers(np.uint8, 6, 2, 7)}, r"`w` .* \[6, 2, 7\].*\[6, 2, 8\]"),
    "scales": ({}, {"scales": normal(6)}, r"scales `scales` .* \[6\].*\[6, 2\] or \[12\]"),
    "zeros": ({}, {"zeros": integers(np.uint8, 12)}, r"`zeros` .* \[12\].*\[6, 1\] or \[6\]"),
    "real zeros": ({}, {"zeros": normal(6)}, r"`zeros` of the shape \[6\].*\[6, 2\] or \[12\]"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_malformed_product_by_blocks_is_refused_by_name(what: str) -> None:
    attributes, inputs, message = REFUSED[what]
    case = by_blocks(4, 32, "bytes")
    case.attributes.update(attributes)
    case.inputs.update(inputs)
    with pytest.raises(GraphError, match=rf"`node` \(MatMulNBits\) has .*{message}"):
        tightship.load(case.model)


REFUSED_TABLES = {
    "bits": ({"bits": 3}, {}, "`bits` = 3.*2, 4 or 8"),
    "block": ({"block_size": 24}, {}, "`block_size` = 24.*power of two from 16"),
    "rows": ({"block_size": 128}, {}, "rows of 64 elements.*`block_size` = 128 must divide them"),
    "gathered": ({"gather_axis": 2}, {}, r"`gather_axis` = 2.*\[-2, 1\]"),
    "both": ({"quantize_axis": 0}, {}, "`gather_axis` = `quantize_axis` = 0"),
    "columns": ({"quantize_axis": 0, "gather_axis": 1}, {}, "a table of uint8.*`gather_axis` = 1"),
    "type": ({}, {"table": integers(np.int8, 10, 32)}, "a table of int8.*int4, uint4 or uint8"),
    "scales": ({}, {"scales": normal(10, 3)}, r"`scales` of the shape \[10, 3\].*\[10, 4\]"),
    "zeros": ({}, {"zeros": integers(np.uint8, 10, 3)}, r"`zeros` of the shape .*\[10, 2\]"),
}


@pytest.mark.parametrize("what", REFUSED_TABLES)
def test_a_malformed_table_is_refused_by_name(what: str) -> None:
    attributes, inputs, message = REFUSED_TABLES[what]
    case = table_of_bytes(4)
    case.attributes.update(attributes)
    case.inputs.update(inputs)
    with pytest.raises(GraphError, match=rf"`node` \(GatherBlockQuantized\) has .*{message}"):
        tightship.load(case.model)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("by_column", [False, True])
def test_an_lstm_of_integer_weights(dtype: Any, *, by_column: bool) -> None:
    """ONNX Runtime rounds inputs and states to 8 bits besides; here they are not rounded."""
    hidden, wide = 4, 8
    shape = (1, 4 * hidden) if by_column else (1,)
    halved = dtype(1 if HAS_VNNI or dtype is np.uint8 else 2)  # ONNX Runtime's sums saturate
    middle = np.full(shape, 128 if dtype is np.uint8 else 0, dtype)
    scale = np.full(shape, 0.004, np.float32)
    inputs: dict[str, Any] = {
        "x": normal(5, 2, wide), "w": integers(dtype, 1, wide, 4 * hidden) // halved,
        "r": integers(dtype, 1, hidden, 4 * hidden) // halved, "b": normal(1, 8 * hidden),
        "lengths": None, "h": None, "c": None, "p": None,
        "ws": scale, "wz": middle, "rs": scale, "rz": middle,
    }  # fmt: skip
    case = Case("DynamicQuantizeLSTM", inputs, {"hidden_size": hidden}, ("y", "", "yc"),
                ("w", "r", "b", "ws", "wz", "rs", "rz"))  # fmt: skip
    wanted = lstm_of_real_weights(inputs)
    np.testing.assert_allclose(run(case)["y"][:, 0], wanted, rtol=1e-5, atol=1e-6)
    assert_near_onnxruntime(case, 0.03)


def lstm_of_real_weights(inputs: dict[str, Any]) -> Any:
    """Compute the schema's equations in float64, by weights that are no integers any more."""
    w, r = (
        (inputs[name][0].astype(np.float64) - inputs[f"{name}z"][0]) * inputs[f"{name}s"][0]
        for name in "wr"
    )
    bias = inputs["b"][0].reshape(2, -1).sum(0)
    h = c = np.zeros((inputs["x"].shape[1], r.shape[0]))
    states = []
    for x in inputs["x"]:
        i, o, f, new = np.split(x @ w + h @ r + bias, 4, axis=-1)
        c = c / (1 + np.exp(-f)) + np.tanh(new) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        states.append(h)
    return np.stack(states)


def assert_near_onnxruntime(case: Case, within: float) -> None:
    names = [name for name in case.outputs if name]
    wanted = onnxruntime.InferenceSession(case.model).run(names, case.feeds)
    found = run(case)
    for name, want in zip(names, wanted, strict=True):
        np.testing.assert_allclose(found[name], want, atol=within, err_msg=name)
