"""Products keep samples apart, or are refused."""

from collections.abc import Callable

import pytest

from tests.graph.batch_axis.opened import check_or_refusal
from tests.zoo.net import Net


@pytest.mark.parametrize(
    ("write", "batch", "reason"),
    [
        (lambda net, x: net("MatMul", x, net.weight(4, 3)), 2, ""),
        (lambda net, x: net("MatMul", net.weight(3, 4), net("Transpose", x)), 2, ""),
        (
            lambda net, x: net("MatMul", net("Transpose", x), net.weight(2, 3)),
            2,
            "sums over the batch",
        ),
        (
            lambda net, x: net("MatMul", x, net("Transpose", x)),
            2,
            "along different axes|sums over the batch",
        ),
        (lambda net, x: net("MatMul", x, net.bias(4)), 2, "multiplies a vector"),
        (lambda net, x: net("Gemm", x, net.weight(3, 4), net.bias(1, 3), transB=1), 2, ""),
        (lambda net, x: net("Gemm", x, net.weight(2, 3), transA=1), 2, "sums over the batch"),
        (lambda net, x: net("Einsum", x, net.weight(4, 3), equation="bi,ij->bj"), 2, ""),
        (
            lambda net, x: net("Einsum", x, net.weight(4, 3), equation="bi,ij->j"),
            2,
            "sums over the batch",
        ),
        (lambda net, x: net("Einsum", x, equation="...i->..."), 2, "ellipsis"),
    ],
)
def test_each_node_keeps_samples_apart_or_says_why_not(
    write: Callable[[Net, str], str], batch: int, reason: str
) -> None:
    check_or_refusal(write, batch, reason)
