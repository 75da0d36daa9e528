"""Weights of a recurrent layer's state in two bytes: whole numbers with scales, or rounded."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.engine.graphs import graph_of, prepared, run
from tests.processor import HAS_BFLOAT16
from tests.zoo.net import Net
from tightship.engine.activations import FLOAT32_PRODUCTS
from tightship.engine.lower.native.recurrent_weights import rounded, streamed
from tightship.frontend.onnx import read_bytes
from tightship.graph import DType, Graph, Inline

HIDDEN, WIDTH, STEPS = 70, 6, 5
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
TEXT = """
g (float[{steps},{batch},6] x) => (float[{steps},{ways},{batch},70] y)
{{
  whole = Cast <to = 1> (q){less}
  real = Mul ({factor}, s)
  r = Transpose <perm = [0, 2, 1]> (real)
  y = {operator} <hidden_size = 70, direction = "{direction}"{more}> (x, w, r)
}}
"""


def quantized(
    operator: str, kind: type, batch: int, ways: int, *, zero: float | None, scales: bool
) -> Graph:
    """A layer whose weights of the state are whole numbers of eight bits, scaled."""
    random = np.random.default_rng(batch)
    rows = GATES[operator] * HIDDEN
    least, most = (0, 255) if kind is np.uint8 else (-128, 127)
    more = ", linear_before_reset = 1" if operator == "GRU" and ways == 1 else ""
    text = TEXT.format(
        steps=STEPS, batch=batch, ways=ways, operator=operator, more=more,
        factor="whole" if zero is None else "less",
        less="" if zero is None else "  less = Sub (whole, z)",
        direction="bidirectional" if ways == 2 else "reverse",
    )  # fmt: skip
    arrays = {
        "w": random.standard_normal((ways, rows, WIDTH)).astype(np.float32),
        "q": random.integers(least, most, (ways, HIDDEN, rows), kind, endpoint=True),
        "s": random.uniform(0.001, 0.003, (ways, 1, rows if scales else 1)).astype(np.float32),
    }
    if zero is not None:
        arrays["z"] = np.full((ways, 1, 1), zero, np.float32)
    return graph_of(text, **arrays)


def of_layer(graph: Graph, without: tuple[str, ...] = ()) -> list[DType | None]:
    """Types of what the layer's step reads."""
    steps = prepared(graph, without).placement.lowered.steps
    (layer,) = (step for step in steps if step.implementation == "recurrent")
    return [operand.dtype for operand in layer.reads]


@pytest.mark.parametrize(("kind", "zero"), [(np.int8, None), (np.int8, -3), (np.uint8, 130)])
@pytest.mark.parametrize("operator", sorted(GATES))
@pytest.mark.parametrize("batch", [1, 3, 7, 9])
def test_whole_numbers_take_two_bytes_and_lose_nothing(
    operator: str, kind: type, batch: int, zero: float | None
) -> None:
    graph = quantized(operator, kind, batch, 1 + batch % 2, zero=zero, scales=batch > 3)
    feeds = {"x": np.random.default_rng(1).standard_normal((STEPS, batch, WIDTH), np.float32)}
    found = run(graph, (), feeds)["y"]
    wanted = run(graph, ("split_recurrent", "native", "onednn"), feeds)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)
    assert of_layer(graph)[1:] == [DType.BFLOAT16, DType.FLOAT32]


@pytest.mark.parametrize("zero", [0.5, -300.0, 200.0])
def test_other_numbers_stay_float32(zero: float) -> None:
    assert of_layer(quantized("LSTM", np.int8, 1, 1, zero=zero, scales=False))[1] is DType.FLOAT32


def test_numbers_lie_by_blocks_of_units() -> None:
    weights = np.arange(2 * 4 * 21 * 21, dtype=np.float32).reshape(2, 84, 21)
    packed = streamed(weights, "lstm").reshape(2, rounded(21) // 16, 21, 4, 16)
    for direction, gate, unit, element in ((0, 0, 0, 0), (1, 3, 20, 7), (0, 2, 15, 20)):
        found = packed[direction, unit // 16, element, gate, unit % 16]
        assert found == weights[direction, gate * 21 + unit, element]
    assert not packed[:, 1, :, :, 5:].any()


@pytest.mark.skipif(not HAS_BFLOAT16, reason="needs products of bfloat16")
@pytest.mark.parametrize("operator", sorted(GATES))
def test_weights_are_rounded_where_that_is_allowed(operator: str) -> None:
    net = Net()
    rows = GATES[operator] * HIDDEN
    x, w = net.normal("x", STEPS, 2, WIDTH), net.constant(np.zeros((1, rows, WIDTH), np.float32))
    r = net.weight(1, rows, HIDDEN)
    state = net.constant(np.full((1, 2, HIDDEN), 0.5, np.float32))
    net.output(net(operator, x, w, r, "", "", state, hidden_size=HIDDEN))
    case = net.case()
    graph = read_bytes(case.model)
    (found,) = run(graph, (FLOAT32_PRODUCTS,), case.feeds).values()
    near = graph.constants[r].array().astype(ml_dtypes.bfloat16).astype(np.float32)
    whole = replace(graph, constants={**graph.constants, r: Inline(near)})
    (wanted,) = run(whole, (), case.feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)
    assert of_layer(graph, (FLOAT32_PRODUCTS,))[1] is DType.BFLOAT16
