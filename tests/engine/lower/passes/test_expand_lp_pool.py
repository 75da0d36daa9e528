"""LpPool as an average of powers, against its definition."""

import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, operators, run
from tightship.engine.lower.passes.expand_lp_pool import expand_lp_pool

OPTIONS = [
    "kernel_shape = [2, 2]",
    "kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 2, 1]",
    'kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_UPPER"',
    'kernel_shape = [2, 2], auto_pad = "SAME_LOWER"',
    'kernel_shape = [3, 3], strides = [2, 2], auto_pad = "VALID"',
]


def pool_graph(options):
    return graph_of(
        f"g (float[2, 3, 9, 8] x) => (float[N, C, H, W] y) {{\
        y = LpPool <{options}> (x) }}"
    )


@pytest.mark.parametrize("power", [1, 2, 3, 5])
@pytest.mark.parametrize("options", OPTIONS)
def test_a_pool_of_powers_is_an_average(options, power):
    graph = pool_graph(f"{options}, p = {power}")
    assert "AveragePool" in operators(expand_lp_pool(graph))
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", ["ceil_mode = 1, strides = [2, 2]", "dilations = [2, 2]"])
def test_windows_that_an_average_counts_otherwise_are_left(options):
    graph = pool_graph(f"kernel_shape = [3, 3], {options}")
    assert operators(expand_lp_pool(graph)) == ["LpPool"]
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-5)
