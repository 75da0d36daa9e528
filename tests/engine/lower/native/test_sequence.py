from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import lowered, run
from tests.engine.kernels.typed import Typed, typed
from tests.engine.native_tier import run_natively
from tests.models import parse
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes


def seeded(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def graph_of(text: str) -> Any:
    header = '<ir_version: 10, opset_import: ["" : 24]>'
    return read_bytes(parse(text, header).SerializeToString())


def check(case: Typed, threads: int, rtol: float = 0) -> None:
    results = run_natively(case.node, case.inputs, case.like, threads)
    assert results is not None
    np.testing.assert_allclose(results[0], case.reference()[0], rtol=rtol, atol=rtol)


@given(st.integers(1, 4), st.integers(1, 5), st.booleans(), st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_sequences_are_reversed_up_to_their_lengths(count, steps, first, threads, data):
    x = seeded(steps, count, 3) if first else seeded(count, steps, 3)
    each = st.lists(st.integers(1, steps), min_size=count, max_size=count)
    lengths = np.array(data.draw(each), np.int64)
    axes = {"time_axis": 0, "batch_axis": 1} if first else {"time_axis": 1, "batch_axis": 0}
    check(typed("ReverseSequence", x, lengths, **axes), threads)


@pytest.mark.parametrize("length", [-1, 6])
def test_a_length_beyond_the_sequence_is_refused(length: int):
    case = typed("ReverseSequence", seeded(5, 1, 2), np.array([length]))
    with pytest.raises(InputError, match=f"reverses {length} steps .* at most 5"):
        run_natively(case.node, case.inputs, case.like)


@given(
    st.sampled_from(["linear", "circular"]), st.sampled_from([-2, 1]), st.integers(1, 3), st.data()
)
@settings(max_examples=60)
def test_steps_are_written_into_a_cache(mode, axis, threads, data):
    x, update = seeded(2, 4, 6, 3), seeded(2, 4, 2, 3)
    if axis == 1:
        update = seeded(2, 3, 6, 3)
    last = 5 if mode == "circular" and axis == -2 else 3 if mode == "circular" else 1
    firsts = np.array(data.draw(st.lists(st.integers(0, last), min_size=2, max_size=2)), np.int64)
    inputs = (x, update, firsts) if data.draw(st.booleans()) else (x, update)
    check(typed("TensorScatter", *inputs, mode=mode, axis=axis, version=24, like=[x]), threads)


@pytest.mark.parametrize("first", [-1, 5])
def test_steps_beyond_the_cache_are_refused(first: int):
    case = typed("TensorScatter", seeded(1, 2, 6, 3), seeded(1, 2, 2, 3), np.array([first]),
                 version=24, like=[seeded(1, 2, 6, 3)])  # fmt: skip
    with pytest.raises(InputError, match=rf"from step {first} on; it must be in \[0, 4\]"):
        run_natively(case.node, case.inputs, case.like)


def test_a_dying_cache_is_appended_to_in_place():
    graph = graph_of(
        "g (float[1, 2, 6, 3] x, float[1, 2, 2, 3] u, int64[1] w) => (float[1, 2, 6, 3] y) "
        "{ a = Abs (x) b = TensorScatter (a, u, w) y = Neg (b) }"
    )
    (step,) = (step for step in lowered(graph).steps if step.implementation == "append")
    assert step.sharing
    feeds = {"x": seeded(1, 2, 6, 3), "u": seeded(1, 2, 2, 3), "w": np.array([3])}
    expected = np.abs(feeds["x"])
    expected[:, :, 3:5] = feeds["u"]
    np.testing.assert_array_equal(run(graph, inputs=feeds)["y"], -expected)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("first", [0, 3])
def test_new_steps_are_read_as_a_transpose_left_them(mode, first):
    """Heads side by side become heads one after another while they are appended: no copy."""
    graph = graph_of(
        "g (float[2, 4, 6, 3] x, float[2, 3, 4, 3] u, int64[2] w) => (float[2, 4, 6, 3] y) "
        f"{{ a = Abs (x) t = Transpose<perm = [0, 2, 1, 3]> (u) "
        f'y = TensorScatter<mode = "{mode}"> (a, t, w) }}'
    )
    steps = [step.implementation for step in lowered(graph).steps]
    assert len(steps) == 2
    feeds = {"x": seeded(2, 4, 6, 3), "u": seeded(2, 3, 4, 3), "w": np.array([first, 1])}
    expected = np.abs(feeds["x"])
    for row, start in enumerate(feeds["w"]):
        expected[row, :, start : start + 3] = feeds["u"][row].transpose(1, 0, 2)
    np.testing.assert_array_equal(run(graph, inputs=feeds)["y"], expected)
