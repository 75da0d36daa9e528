"""Convolutions that no other image operator is near."""

import pytest

from tests.engine.graphs import graph_of
from tests.models import filled
from tightship.engine.lower.passes.lone_images import lone


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("c = Conv (x, w) y = Relu (c)", {"c"}),
        ("c = Conv (x, w) d = Conv (c, w) y = Neg (d)", {"c", "d"}),
        ("c = Conv (x, w) p = MaxPool <kernel_shape = [1, 1]> (c) y = Neg (p)", set()),
        ("c = Conv (x, w) k = Sin (c) p = LRN <size = 3> (k) y = Neg (p)", set()),
        ("p = LRN <size = 3> (x) q = Softmax (p) c = Conv (q, w) y = Neg (c)", {"c"}),
        ("c = Conv (x, w) t = Transpose <perm = [0, 1, 3, 2]> (c) y = Neg (t)", set()),
    ],
)
def test_values_between_operators_pass_through_such_as_keep_a_layout(body, found):
    graph = graph_of(
        f"g (float[1, 6, 8, 8] x) => (float[1, 6, 8, 8] y) {{ {body} }}", w=filled(6, 6, 1, 1)
    )
    fitting = {node.name for node in graph.nodes if node.operator == "Conv"}
    names = lone(graph, fitting, beside=("Transpose",))
    assert {node.outputs[0] for node in graph.nodes if node.name in names} == found
