"""A product of a column by a row multiplies elements."""

import pytest

from tests.engine.graphs import implementations, run
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected
from tightship.frontend.onnx import read_bytes


@pytest.mark.parametrize(
    ("left", "right"), [((5, 1), (1, 7)), ((2, 5, 1), (1, 7)), ((4, 2, 5, 1), (2, 1, 7))]
)
@pytest.mark.parametrize("constant", ["", "left", "right"])
def test_an_outer_product_multiplies_elements(left, right, constant):
    net = Net(3)
    operands = [
        net.weight(*shape) if side == constant else net.normal(side, *shape)
        for side, shape in (("left", left), ("right", right))
    ]
    net.output(net("MatMul", *operands))
    case = net.case()
    graph = read_bytes(case.model)
    operator = "MatMul" if constant == "right" else "Mul"
    assert [step[0] for step in implementations(graph)] == [operator]
    assert_near(run(graph, (), case.feeds), expected(case.model, case.feeds))
