"""Constant matrices of encoded rows, and the kernels that read them."""

import gguf
import numpy as np
import pytest

import tightship
from tests.frontend.gguf.written import random_blocks
from tests.frontend.onnx.contrib.test_own import encoded_model
from tightship.engine.lower.passes.blocks import EncodedRows
from tightship.engine.lower.passes.encoded_rows import encoded_weights
from tightship.graph import DType, Inline

ROWS, DEPTH = 6, 64
RAW = np.frombuffer(random_blocks("Q5_1", ROWS, DEPTH, 1).raw, np.uint8).reshape(ROWS, -1)
VALUES = gguf.quants.dequantize(RAW, gguf.GGMLQuantizationType["Q5_1"])


def test_a_constant_is_its_numbers_either_way_round() -> None:
    encoded = EncodedRows("Q5_1", ROWS, DEPTH, Inline(RAW))
    for is_turned in (False, True):
        found = encoded_weights(encoded, DType.FLOAT32, is_turned=is_turned)
        wanted = VALUES.T if is_turned else VALUES
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.array(), wanted)


@pytest.mark.parametrize("without", [(), ("native",), ("native", "onednn")])
def test_products_and_gathers_agree_without_the_kernels(without: tuple[str, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((2, DEPTH)).astype(np.float32)
    with tightship.load(encoded_model("Q5_1", RAW), without=without) as loaded:
        kinds = {step.implementation for step in loaded.plan.steps}
        found = loaded.run({"x": x, "i": np.array([2, 0])})
    assert ({"encoded_product", "encoded_gather"} <= kinds) is ("native" not in without)
    np.testing.assert_allclose(found["y"], x @ VALUES.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found["g"], VALUES[[2, 0]])
