"""Products and recurrent layers by weights stored as small integers."""

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.frontend.onnx.contrib.case import Case, assert_as_onnxruntime, integers, normal, run

BLOCK, ROWS = 16, 6


def by_blocks(bits: int, depth: int, zeros: str, *, bias: bool = False) -> Case:
    """A product by ROWS rows of `depth` weights in blocks, the last of which may be cut."""
    blocks = -(-depth // BLOCK)
    given = {
        "none": None, "bytes": integers(np.uint8, ROWS * -(-blocks * bits // 8)),
        "real": np.abs(normal(ROWS * blocks)),
    }  # fmt: skip
    inputs = {
        "x": normal(2, 3, depth), "w": integers(np.uint8, ROWS, blocks, BLOCK * bits // 8),
        "scales": normal(ROWS * blocks), "zeros": given[zeros], "order": None,
        "bias": normal(ROWS) if bias else None,
    }  # fmt: skip
    attributes = {"K": depth, "N": ROWS, "bits": bits, "block_size": BLOCK}
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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("by_column", [False, True])
def test_an_lstm_of_integer_weights(dtype: Any, *, by_column: bool) -> None:
    """ONNX Runtime rounds inputs and states to 8 bits besides; here they are not rounded."""
    hidden, wide = 4, 8
    shape = (1, 4 * hidden) if by_column else (1,)
    middle = np.full(shape, 128 if dtype is np.uint8 else 0, dtype)
    scale = np.full(shape, 0.004, np.float32)
    inputs: dict[str, Any] = {
        "x": normal(5, 2, wide), "w": integers(dtype, 1, wide, 4 * hidden),
        "r": integers(dtype, 1, hidden, 4 * hidden), "b": normal(1, 8 * hidden),
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
