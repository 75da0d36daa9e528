"""ConvInteger whatever the type and the zero point of its weights, against the reference."""

import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, implementations, operators, run
from tightship import _core
from tightship.engine.lower.onednn import integer_convolution
from tightship.engine.lower.passes.split_integers import split_integers

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

CASES = [
    (np.int8, None, 1),
    (np.int8, np.int8(-128), 3),
    (np.int8, np.int8(3), 2),
    (np.uint8, np.uint8(128), 1),
    (np.uint8, np.uint8(120), 2),
    (np.uint8, np.array([0, 128, 255, 7], np.uint8), 3),
    (np.uint8, None, 3),
]
"""Type and zero point of weights, and how many convolutions that takes."""


def convolved(dtype, zero, source=np.uint8, groups=1):
    """ConvInteger of an image that has a zero point; weights have every number there is."""
    limits = np.iinfo(dtype)
    numbers = np.arange(limits.min, limits.max + 1)
    weights = np.resize(numbers, (4, 8 // groups, 3, 3)).astype(dtype)
    weights.flat[-2:] = limits.min, limits.max
    named = "" if zero is None else ", wz"
    constants = {} if zero is None else {"wz": np.asarray(zero)}
    graph = graph_of(
        f"""g ({np.dtype(source).name}[2, 8, 6, 5] x) => (int32[2, 4, 6, 5] y) {{
            y = ConvInteger <pads = [1, 1, 1, 1], group = {groups}> (x, w, xz{named})
        }}""",
        w=weights, xz=np.array(9, source), **constants,
    )  # fmt: skip
    limits = np.iinfo(source)
    x = np.random.default_rng(3).integers(limits.min, limits.max + 1, (2, 8, 6, 5))
    return graph, {"x": x.astype(source)}


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("source", [np.uint8, np.int8])
@pytest.mark.parametrize(("dtype", "zero", "count"), CASES)
def test_sums_are_exact(dtype, zero, count, source, groups):
    graph, inputs = convolved(dtype, zero, source, groups)
    assert operators(split_integers(graph)).count("ConvInteger") == count
    assert "reference" not in {kernel for _, kernel, _ in implementations(graph)}
    np.testing.assert_array_equal(run(graph, inputs=inputs)["y"], expected(graph, inputs)["y"])


def test_without_the_pass_sums_are_the_same():
    graph, inputs = convolved(np.uint8, np.uint8(120))
    found = run(graph, ("split_integers",), inputs=inputs)
    np.testing.assert_array_equal(found["y"], expected(graph, inputs)["y"])


@pytest.mark.parametrize("source", [np.uint8, np.int8])
def test_where_sums_of_two_products_saturate_weights_are_halved(source, monkeypatch):
    monkeypatch.setattr(integer_convolution, "sums_saturate", lambda: True)
    graph, inputs = convolved(np.int8, None, source)
    steps = [operator for operator, *_ in implementations(graph)]
    assert steps.count("ConvInteger") == 2
    np.testing.assert_array_equal(run(graph, inputs=inputs)["y"], expected(graph, inputs)["y"])
