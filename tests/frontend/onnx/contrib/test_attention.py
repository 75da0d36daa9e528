"""Attention, heads that come apart, and rotary embedding."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tightship
from tests.frontend.onnx.contrib.case import RANDOM, Case, assert_as_onnxruntime, normal, run

BATCH, STEPS, HEADS, LENGTH = 2, 5, 3, 4
WIDE = HEADS * LENGTH


def masks(keys: int) -> list[Any]:
    lengths = np.array([3, 5], np.int32)
    kept = (np.arange(keys) < lengths[:, None]).astype(np.int32)
    return [
        None, kept, lengths, np.array([4, 5, 1, 0], np.int32),
        np.repeat(kept[:, None], STEPS, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", range(5), ids=["none", "kept", "lengths", "ends", "each"])
def test_attention_by_one_matrix(mask: int, causal: int) -> None:
    inputs = {
        "x": normal(BATCH, STEPS, 7), "w": normal(7, 3 * WIDE), "b": normal(3 * WIDE),
        "mask": masks(STEPS)[mask],
    }  # fmt: skip
    attributes = {"num_heads": HEADS, "unidirectional": causal}
    assert_as_onnxruntime(Case("Attention", inputs, attributes, weights=("w", "b")))


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("biased", [False, True])
def test_attention_with_a_past_or_a_bias(causal: int, *, biased: bool) -> None:
    inputs = {
        "x": normal(BATCH, STEPS, 7), "w": normal(7, 3 * WIDE), "b": normal(3 * WIDE),
        "mask": None, "past": None if biased else normal(2, BATCH, HEADS, 6, LENGTH),
        "bias": normal(BATCH, HEADS, STEPS, STEPS) if biased else None,
    }  # fmt: skip
    attributes = {"num_heads": HEADS, "unidirectional": causal}
    outputs = ("y",) if biased else ("y", "present")
    assert_as_onnxruntime(Case("Attention", inputs, attributes, outputs, ("w", "b")))


def test_attention_of_values_of_another_width_by_a_scale() -> None:
    inputs = {"x": normal(BATCH, STEPS, 7), "w": normal(7, 2 * 12 + 18), "b": normal(2 * 12 + 18)}
    attributes = {"num_heads": 3, "qkv_hidden_sizes": [12, 12, 18], "scale": 0.3}
    assert_as_onnxruntime(Case("Attention", inputs, attributes, weights=("w", "b")))


def test_a_word_of_the_mask_that_fills() -> None:
    inputs = {
        "x": normal(BATCH, STEPS, 7), "w": normal(7, 3 * WIDE), "b": normal(3 * WIDE),
        "mask": masks(STEPS)[1],
    }  # fmt: skip
    attributes = {"num_heads": HEADS, "mask_filter_value": -2.0}
    assert_as_onnxruntime(Case("Attention", inputs, attributes, weights=("w", "b")))


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_runs_every_length(causal: int) -> None:
    inputs = {
        "x": normal(BATCH, STEPS, 7), "w": normal(7, 3 * WIDE), "b": normal(3 * WIDE),
        "mask": masks(STEPS)[1],
    }  # fmt: skip
    attributes = {"num_heads": HEADS, "unidirectional": causal}
    case = Case("Attention", inputs, attributes, weights=("w", "b"))
    proto = onnx.load_from_string(case.model)
    for value in proto.graph.input:
        for axis, name in enumerate(("batch", "steps")):
            value.type.tensor_type.shape.dim[axis].dim_param = name
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    shapes = {"x": (BATCH, STEPS, 7), "mask": (BATCH, STEPS)}
    with tightship.load(proto.SerializeToString(), shapes=shapes) as model:
        for batch, steps in ((2, 5), (2, 9), (3, 7), (1, 1)):
            kept = (np.arange(steps) < 4).astype(np.int32)[None].repeat(batch, 0)
            feeds = {"x": normal(batch, steps, 7), "mask": kept}
            wanted = session.run(None, feeds)[0]
            np.testing.assert_allclose(model.run(feeds)["y"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["flat", "heads"])
@pytest.mark.parametrize("mask", range(3), ids=["none", "kept", "lengths"])
def test_heads_that_come_apart(form: str, mask: int) -> None:
    shape = (BATCH, 6, WIDE) if form == "flat" else (BATCH, HEADS, 6, LENGTH)
    inputs = {
        "q": normal(BATCH, STEPS, WIDE), "k": normal(*shape), "v": normal(*shape),
        "b": normal(3 * WIDE) if form == "flat" else None, "mask": masks(6)[mask],
    }  # fmt: skip
    assert_as_onnxruntime(Case("MultiHeadAttention", inputs, {"num_heads": HEADS}))


@pytest.mark.parametrize("parts", [2, 3])
def test_packed_heads_are_those_that_come_apart(parts: int) -> None:
    packed = normal(BATCH, STEPS, HEADS, parts, LENGTH)
    query = normal(BATCH, STEPS, WIDE) if parts == 2 else packed[:, :, :, 0].reshape(2, 5, WIDE)
    key, value = (packed[:, :, :, part].reshape(2, 5, WIDE) for part in (parts - 2, parts - 1))
    apart = Case("MultiHeadAttention", {"q": query, "k": key, "v": value}, {"num_heads": HEADS})
    inputs = {"q": query, "k": packed} if parts == 2 else {"q": packed}
    together = Case("MultiHeadAttention", inputs, {"num_heads": HEADS})
    np.testing.assert_allclose(run(together)["y"], run(apart)["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [0, 1])
def test_heads_with_a_past(causal: int) -> None:
    past = {name: normal(BATCH, HEADS, 4, LENGTH) for name in ("past_key", "past_value")}
    parts = {name: normal(BATCH, STEPS, WIDE) for name in "qkv"}
    bias = normal(1, HEADS, STEPS, STEPS + 4)
    inputs = {**parts, "b": normal(3 * WIDE), "mask": None, "bias": bias, **past}
    attributes = {"num_heads": HEADS, "unidirectional": causal, "scale": 0.4}
    outputs = ("y", "present_key", "present_value")
    assert_as_onnxruntime(Case("MultiHeadAttention", inputs, attributes, outputs))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_rotary_embedding(interleaved: int, *, flat: bool, first: bool) -> None:
    angles = np.outer(np.arange(20), 1 / 10 ** np.arange(4)).astype(np.float32)
    shape = (BATCH, STEPS, 3 * 8) if flat else (BATCH, 3, STEPS, 8)
    places = np.array([3]) if first else RANDOM.integers(0, 20, (BATCH, STEPS))
    inputs = {"x": normal(*shape), "p": places.astype(np.int64), "c": np.cos(angles),
              "s": np.sin(angles)}  # fmt: skip
    assert_as_onnxruntime(Case("RotaryEmbedding", inputs, {"interleaved": interleaved}))
