"""Every form of a product runs on the fast kernel there is, with the numbers of ONNX Runtime."""

import numpy as np
import pytest

from tests.engine.graphs import implementations, run
from tests.processor import PRODUCT
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected
from tightship._core import HAS_ONEDNN
from tightship.engine.lower.passes.expand_product import expand_product
from tightship.frontend.onnx import read_bytes


def assert_fast(case, tiers=frozenset({PRODUCT, "onednn"})):
    graph, want = read_bytes(case.model), expected(case.model, case.feeds)
    for without in ((), ("expand_product",), ("onednn",)):
        assert_near(run(graph, without, case.feeds), want)
    if HAS_ONEDNN:
        products = [step for step in implementations(graph) if step[0][:4] in ("MatM", "Gemm")]
        assert products
        assert {tier for _, tier, _ in products} <= tiers


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("turned_left", "turned_right"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("bias", [(), (7,), (1, 7), (5, 1), (5, 7), None])
def test_any_gemm(constant, turned_left, turned_right, alpha, beta, bias):
    net = Net(1)
    left = net.normal("a", *((3, 5) if turned_left else (5, 3)))
    shape = (7, 3) if turned_right else (3, 7)
    right = net.weight(*shape) if constant else net.normal("b", *shape)
    term = [] if bias is None else [net.weight(*bias) if constant else net.normal("c", *bias)]
    net.output(
        net("Gemm", left, right, *term, transA=turned_left, transB=turned_right,
            alpha=alpha, beta=beta)
    )  # fmt: skip
    is_turned = turned_left and bias is None
    assert_fast(net.case(), {"onednn" if constant and not is_turned else PRODUCT})


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((3,), (3, 7)), ((5, 3), (3,)), ((2, 5, 3), (3,)), ((3,), (2, 3, 7)),
     ((5, 3), (2, 3, 7)), ((2, 5, 3), (3, 7)), ((4, 2, 5, 3), (2, 3, 7)), ((2, 5, 3), (1, 3, 7)),
     ((1, 5, 3), (2, 3, 7)), ((2, 1, 5, 3), (1, 4, 3, 7)), ((2, 1, 3), (3, 7))],
)  # fmt: skip
def test_operands_of_any_ranks(constant, left, right):
    net = Net(2)
    x = net.normal("x", *left)
    net.output(net("MatMul", x, net.weight(*right) if constant else net.normal("y", *right)))
    assert_fast(net.case())


@pytest.mark.parametrize("flag", ["transA", "transB"])
def test_what_is_transposed_twice_is_read_as_it_is(flag):
    """A copy of a table would be as large as the table."""
    net = Net(3)
    table = net("Transpose", net.normal("t", 3, 3), perm=(1, 0))
    other = net.normal("x", 3, 3)
    operands = (table, other) if flag == "transA" else (other, table)
    net.output(net("Gemm", *operands, **{flag: 1}))
    case = net.case()
    assert_fast(case, {PRODUCT})
    found = expand_product(read_bytes(case.model)).nodes
    assert [node.operator for node in found] == ["Transpose", "Transpose", "MatMul"]
    assert not any(
        operator == "Reorder" for operator, *_ in implementations(read_bytes(case.model))
    )


def test_a_product_of_whole_numbers_is_left_alone():
    net = Net(5)
    net.output(net("MatMul", net.input("x", np.array([1, 2])), net.constant(np.array([3, 4]))))
    graph = read_bytes(net.case().model)
    assert expand_product(graph) is graph
