"""Group normalization as PyTorch exports it: by InstanceNormalization of reshaped groups."""

import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.recognize_group_norm import recognize_group_norm

HEAD = "g (float[2, 6, 5, 4] x) => (float[2, 6, 5, 4] y) {\
    a = Reshape (x, apart) n = InstanceNormalization <epsilon = 0.01> (a, gs, gb) "
BACK = "r = Reshape (n, back) "


def group_graph(tail, **changes):
    constants = {
        "apart": np.array([0, 3, -1], np.int64), "back": np.array([2, 6, 5, 4], np.int64),
        "gs": np.ones(3, np.float32), "gb": np.zeros(3, np.float32),
        "w": filled(6, 1, 1), "b": filled(6, 1, 1) + np.float32(0.3),
    }  # fmt: skip
    return graph_of(f"{HEAD}{tail} }}", **{**constants, **changes})


@pytest.mark.parametrize(
    ("tail", "changes"),
    [
        (f"{BACK} m = Mul (r, w) y = Add (m, b)", {}),
        (f"{BACK} m = Mul (w, r) y = Add (b, m)", {}),
        (f"{BACK} y = Mul (r, w)", {}),
        ("y = Reshape (n, back)", {}),
        (f"{BACK} m = Mul (r, w) y = Add (m, b)",
         {"gs": filled(3) + np.float32(1), "gb": filled(3)}),
        (f"{BACK} m = Mul (r, w) y = Add (m, b)", {"apart": np.array([2, 3, 40, 1], np.int64)}),
    ],
    ids=["as exported", "turned", "no shift", "bare", "groups scaled too", "four axes"],
)  # fmt: skip
def test_it_is_one_operator(tail, changes):
    graph = group_graph(tail, **changes)
    assert operators(recognize_group_norm(graph)) == ["GroupNormalization"]
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("tail", "changes"),
    [
        (f"{BACK} m = Mul (r, w) y = Add (m, b)", {"apart": np.array([1, 3, 80], np.int64)}),
        (f"{BACK} m = Mul (r, r) y = Add (m, b)", {}),
        (f"{BACK} s = Reshape (n, back) y = Add (r, s)", {}),
    ],
    ids=["groups across the batch", "no constant", "read twice"],
)
def test_what_differs_gives_what_it_gave(tail, changes):
    graph = group_graph(tail, **changes)
    if changes:
        assert recognize_group_norm(graph) is graph
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-5)
