import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.kernels.typed import typed
from tests.engine.native_tier import run_natively


@given(
    st.lists(
        st.tuples(
            st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2),
            st.integers(0, 2), st.integers(0, 2),
        ),
        min_size=2, max_size=3,
    )
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_blocks_are_added_up_where_they_lie(axes):
    image, block, strides, dilations, ahead, behind = (
        list(each) for each in zip(*axes, strict=True)
    )
    columns = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, d, a, b in zip(image, block, strides, dilations, ahead, behind, strict=True)
    ]
    if min(columns) < 1:
        return
    shape = (2, 3 * int(np.prod(block)), int(np.prod(columns)))
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    case = typed(
        "Col2Im", x, np.array(image), np.array(block), strides=strides, dilations=dilations,
        pads=[*ahead, *behind], like=[np.zeros((2, 3, *image), np.float32)],
    )  # fmt: skip
    results = run_natively(case.node, case.inputs, case.like, threads=2)
    assert results is not None
    np.testing.assert_allclose(results[0], case.reference()[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_other_types_are_left_to_others(dtype):
    case = typed("Col2Im", np.ones((1, 4, 4), dtype), np.array([3, 3]), np.array([2, 2]),
                 like=[np.zeros((1, 1, 3, 3), dtype)])  # fmt: skip
    assert run_natively(case.node, case.inputs, case.like) is None
