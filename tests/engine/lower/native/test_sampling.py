from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightship
from tests.engine.kernels.typed import typed
from tests.engine.native_tier import run_natively
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected

MODES = st.sampled_from(["nearest", "linear", "cubic"])
BEYOND = st.sampled_from(["zeros", "border", "reflection"])
LENGTH = st.integers(2, 4)


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def sampled(x: Any, grid: Any, **attributes: Any) -> tuple[Any, Any]:
    """Return the native kernel's result, and that of onnx."""
    case = typed("GridSample", x, grid, **attributes)
    results = run_natively(case.node, case.inputs, case.like, threads=2)
    assert results is not None
    return results[0], case.reference()[0]


@given(MODES, BEYOND, st.integers(0, 1), st.lists(LENGTH, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_places_are_read_as_onnx_reads_them(mode, beyond, aligns, lengths):
    if len(lengths) == 3 and mode == "cubic":
        lengths = lengths[:2]
    grid = normal(2, *[2] * len(lengths), len(lengths)) * np.float32(1.3)
    result, wanted = sampled(
        normal(2, 3, *lengths), grid, mode=mode, padding_mode=beyond, align_corners=aligns
    )
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beyond", ["zeros", "border", "reflection"])
def test_a_place_that_is_no_number_reads_nothing_outside(beyond: str) -> None:
    grid = np.array([np.nan, np.inf, -np.inf, 3e38, 0, 0, -3e38, 1], np.float32)
    case = typed("GridSample", normal(1, 1, 3, 3), grid.reshape(1, 2, 2, 2), padding_mode=beyond)
    results = run_natively(case.node, case.inputs, case.like)
    assert results is not None


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_channels_stay_side_by_side(mode: str) -> None:
    net = Net(opset=16)
    x = net("Conv", net.normal("x", 2, 5, 6, 7), net.weight(18, 5, 3, 3), pads=[1, 1, 1, 1])
    grid = net("Tanh", net.normal("grid", 2, 4, 5, 2))
    net.output(net("Relu", net("GridSample", x, grid, mode=mode)))
    case = net.case()
    with tightship.load(case.model) as model:
        assert {step.kernel for step in model.plan.steps} <= {"onednn", "native"}
        assert "Reorder" not in [step.operator for step in model.plan.steps][2:-2]
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
