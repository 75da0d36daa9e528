import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.engine.kernels import evaluate, numpy_kernel
from tightship.errors import GraphError
from tightship.graph import DType, Node, Value


@given(st.booleans(), st.booleans())
def test_both_tiers_give_the_same(types_known: bool, strided: bool):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = x[:, ::2] if strided else x
    axes = np.array([1], np.int64)
    node = Node("r", "ReduceSum", ("x", "axes"), ("y",), {"keepdims": 0}, "", 13)
    types = [Value("y", DType.FLOAT32, (3,))] if types_known else None
    (result,) = evaluate(node, [x, axes], types)
    np.testing.assert_array_equal(result, x.sum(1))


def test_operators_without_a_kernel_are_evaluated_too():
    node = Node("n", "NonZero", ("x",), ("y",), {}, "", 13)
    (result,) = evaluate(node, [np.array([0, 5, 7])], [Value("y", DType.INT64, (1, 2))])
    assert result.tolist() == [[1, 2]]


def test_absent_operands_stay_absent():
    node = Node("c", "Clip", ("x", "", "high"), ("y",), {}, "", 13)
    x, high = np.array([1, 9], np.float32), np.array(4, np.float32)
    types = [Value("y", DType.FLOAT32, (2,))]
    assert numpy_kernel(node, [types[0], None, Value("high", DType.FLOAT32, ())], types, {})
    assert evaluate(node, [x, None, high], types)[0].tolist() == [1, 4]


def test_what_no_tier_can_run_is_an_error():
    with pytest.raises(GraphError, match="`n`"):
        evaluate(Node("n", "Nothing", ("x",), ("y",), {}, "", 13), [np.ones(1)])
