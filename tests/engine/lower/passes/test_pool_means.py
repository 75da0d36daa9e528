import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, implementations, operators, run
from tightship import _core
from tightship.engine.lower.passes.pool_means import pool_means


def net(operator, axes, *, keep=1, shape=(2, 3, 4, 5), dtype="float"):
    count = len(axes) if not keep else 0
    result = [1 if i in [a % len(shape) for a in axes] else n for i, n in enumerate(shape)]
    if count:
        result = [n for i, n in enumerate(shape) if i not in [a % len(shape) for a in axes]]
    types = [", ".join(map(str, dims)) for dims in (shape, result)]
    return graph_of(
        f"g ({dtype}[{types[0]}] x) => ({dtype}[{types[1]}] y) "
        f"{{ y = {operator} <keepdims = {keep}> (x, axes) }}",
        axes=np.array(axes),
    )


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(("shape", "axes"), [
    ((2, 3, 4, 5), (2, 3)), ((2, 3, 4, 5), (-1, -2)), ((2, 3, 4), (2,)),
    ((1, 2, 3, 4, 5), (2, 3, 4)),
])  # fmt: skip
@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceMax"])
def test_a_reduction_over_all_of_an_image_is_a_global_pooling(operator, shape, axes, keep):
    graph = net(operator, axes, shape=shape, keep=keep)
    pooled = pool_means(graph)
    pooling = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}[operator]
    assert operators(pooled) == ([pooling] if keep else [pooling, "Flatten"])
    assert_close(run(pooled), expected(graph))
    if _core.HAS_ONEDNN:
        kernels = {name: kernel for name, kernel, _ in implementations(pooled)}
        assert kernels[pooling] == "onednn"


def test_axes_may_be_an_attribute():
    graph = graph_of(
        "g (float[2, 3, 4] x) => (float[2, 3, 1] y) { y = ReduceMean <axes = [2]> (x) }",
        header='<ir_version: 8, opset_import: ["": 13]>',
    )
    assert operators(pool_means(graph)) == ["GlobalAveragePool"]
    assert_close(run(pool_means(graph)), expected(graph))


@pytest.mark.parametrize("graph", [
    net("ReduceMean", (3,)), net("ReduceMean", (1, 2, 3)), net("ReduceMean", (1, 2)),
    net("ReduceSum", (2, 3)), net("ReduceMean", (1,), shape=(3, 4)),
    net("ReduceMean", (2, 3), dtype="double"),
])  # fmt: skip
def test_other_reductions_stay(graph):
    assert operators(pool_means(graph)) == operators(graph)
