"""Products by weights in blocks, with what is fused into them, and forms that no kernel takes."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import tightship
from tests.frontend.onnx.contrib.case import integers, normal

DEPTH, COLUMNS = 96, 40


def model(*nodes: Any, kind: type = np.float32, **tensors: Any) -> bytes:
    """Nodes after `p`, a product of `x` of [rows, 3, DEPTH] by weights in blocks of 4 bits."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    stored = {"w": integers(np.uint8, COLUMNS, 3, 16), "s": normal(COLUMNS, 3).astype(kind)}
    product = helper.make_node("MatMulNBits", ["x", "w", "s"], ["p"], domain="com.microsoft",
                               K=DEPTH, N=COLUMNS, bits=4, block_size=32)  # fmt: skip
    graph = helper.make_graph(
        [product, *nodes], "g",
        [helper.make_tensor_value_info("x", number, ["rows", 3, DEPTH])],
        [helper.make_tensor_value_info("y", number, None)],
        [numpy_helper.from_array(value, name) for name, value in (stored | tensors).items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return made.SerializeToString()


ENDS = {
    "bias": [helper.make_node("Add", ["p", "b"], ["y"])],
    "relu": [helper.make_node("Relu", ["p"], ["y"])],
    "bias and gelu": [helper.make_node("Add", ["p", "b"], ["q"]),
                      helper.make_node("Gelu", ["q"], ["y"])],
    "swish": [helper.make_node("Sigmoid", ["p"], ["q"]),
              helper.make_node("Mul", ["p", "q"], ["y"])],
    "itself": [helper.make_node("Neg", ["p"], ["n"]), helper.make_node("Add", ["p", "n"], ["y"])],
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("without", [(), ("onednn",), ("native",), ("fuse_activation",)], ids=str)
@pytest.mark.parametrize("end", ENDS)
def test_what_follows_a_product_is_computed(
    end: str, without: tuple[str, ...], threads: int
) -> None:
    made = model(*ENDS[end], b=normal(COLUMNS))
    session = onnxruntime.InferenceSession(made)
    with tightship.load(made, shapes={"x": (2, 3, DEPTH)}, without=without, threads=threads) as m:
        in_blocks = [step.implementation == "block_product" for step in m.plan.steps]
        assert any(in_blocks) == ("native" not in without)
        for rows in (2, 1, 9):
            x = normal(rows, 3, DEPTH)
            np.testing.assert_allclose(m(x), session.run(None, {"x": x})[0], 1e-4, 1e-3)


def test_a_product_of_halves_reads_the_scales_as_they_are() -> None:
    made = model(helper.make_node("Relu", ["p"], ["y"]), kind=np.float16)
    x = normal(2, 3, DEPTH).astype(np.float16)
    wanted = onnxruntime.InferenceSession(made).run(None, {"x": x})[0].astype(np.float32)
    with tightship.load(made, shapes={"x": x.shape}) as loaded:
        assert "block_product" in [step.implementation for step in loaded.plan.steps]
        assert loaded.plan.weights_bytes <= COLUMNS * 3 * (16 + 2) + 128
        found = loaded(x).astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=5e-3, atol=5e-2)


def test_a_product_of_no_rows_gives_none() -> None:
    made = model(helper.make_node("Relu", ["p"], ["y"]))
    with tightship.load(made, shapes={"x": (0, 3, DEPTH)}) as loaded:
        assert loaded(np.zeros((0, 3, DEPTH), np.float32)).shape == (0, 3, COLUMNS)
