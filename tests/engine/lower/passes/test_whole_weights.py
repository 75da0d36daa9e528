"""Weights of recurrent layers made of whole numbers, without their real form in between."""

import tracemalloc

import numpy as np
import pytest

from tests.engine.graphs import graph_of
from tightship.engine.lower.passes.fold_constants import fold_constants
from tightship.engine.lower.passes.whole_weights import whole_weights

TEXT = """
g (float[{ways},{to},{depth}] x) => (float[{ways},{to},{depth}] y)
{{
  whole = Cast <to = 1> (q){less}
  real = Mul ({factor}, s)
  r = Transpose <perm = [0, 2, 1]> (real)
  y = Add (x, r)
}}
"""


def weights(kind: type, zero: float | None, *, ways: int = 2, to: int = 48, depth: int = 96):
    """The constant that these numbers, and scales for each row, make."""
    random = np.random.default_rng(3)
    arrays = {
        "q": random.integers(0, 100, (ways, depth, to)).astype(kind),
        "s": random.uniform(0.001, 0.003, (ways, 1, to)).astype(np.float32),
    }
    if zero is not None:
        arrays["z"] = np.full((ways, 1, 1), zero, np.float32)
    graph = fold_constants(graph_of(
        TEXT.format(ways=ways, to=to, depth=depth, less="" if zero is None else
                    "  less = Sub (whole, z)", factor="whole" if zero is None else "less"),
        **arrays,
    ))  # fmt: skip
    return graph.constants[graph.nodes[-1].inputs[1]]


@pytest.mark.parametrize(("kind", "zero"), [(np.int8, None), (np.int8, -3), (np.uint8, 130)])
def test_a_matrix_of_columns_has_the_bits_of_the_weights(kind: type, zero: float | None) -> None:
    constant = weights(kind, zero)
    found = whole_weights(constant)
    assert found is not None
    wanted = constant.array().reshape(-1, 96).T
    np.testing.assert_array_equal(found.columns(), wanted)
    scale = np.swapaxes(found.scale.array(), 1, 2)
    np.testing.assert_array_equal(
        np.swapaxes(found.whole(), 1, 2).astype(np.float32) * scale, constant.array()
    )


def test_the_weights_are_held_once_while_columns_are_computed() -> None:
    constant = weights(np.int8, 2, to=512, depth=512)
    found = whole_weights(constant)
    assert found is not None
    size = 2 * 512 * 512 * 4
    tracemalloc.start()
    try:
        found.columns()
        assert tracemalloc.get_traced_memory()[1] < 1.6 * size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("kind", "zero"), [(np.int16, None), (np.int8, 0.5), (np.uint8, -1)])
def test_other_weights_have_no_such_parts(kind: type, zero: float | None) -> None:
    assert whole_weights(weights(kind, zero)) is None
