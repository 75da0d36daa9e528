"""Results of a model by ONNX Runtime, and the tolerance for ours."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from tests.zoo.net import Case

Array = NDArray[Any]


def quiet(*, optimised: bool = True) -> onnxruntime.SessionOptions:
    """Options of a session on one thread that writes no warnings."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def expected(model: bytes | str, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """ONNX Runtime's outputs by name, every node run as it is written."""
    session = onnxruntime.InferenceSession(model, quiet(optimised=False))
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def expected_with_scale(case: Case) -> tuple[dict[str, Array], float]:
    """ONNX Runtime's outputs, and the largest finite magnitude of any value on the way."""
    model = onnx.load_from_string(case.model)
    names = [output.name for output in model.graph.output]
    inner = [value for value in model.graph.value_info if value.name not in names]
    model.graph.output.extend(inner)
    values = expected(model.SerializeToString(), case.feeds)
    scale = max(magnitude(array) for array in (*values.values(), *case.feeds.values()))
    return {name: values[name] for name in names}, scale


def magnitude(array: Array) -> float:
    """The largest finite absolute value; 0 of what holds no numbers."""
    if array.dtype.kind not in "fiu":
        return 0.0
    numbers = np.abs(array[np.isfinite(array)].astype(np.float64))
    return float(numbers.max(initial=0.0))


def assert_near(
    results: Mapping[str, Array],
    wanted: Mapping[str, Array],
    *,
    scale: float | None = None,
    tolerance: float = 1e-4,
) -> None:
    """Assert that results have the names, types and values of what is wanted.

    Numbers may differ by 1e-3 of themselves, or by `tolerance` of `scale`: the largest number
    they were computed from, or else the largest of the output itself.
    """
    assert list(results) == list(wanted)
    for name, want in wanted.items():
        result = results[name]
        assert (result.dtype, result.shape) == (want.dtype, want.shape), name
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(result, want, err_msg=name)
            continue
        within = tolerance * (magnitude(want) if scale is None else scale)
        np.testing.assert_allclose(result, want, rtol=1e-3, atol=within, err_msg=name)


def assert_same_bits(results: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    """Assert that results are equal bit by bit; strings, letter by letter."""
    for name, want in wanted.items():
        same = results[name].tolist() if want.dtype == object else results[name].tobytes()
        assert same == (want.tolist() if want.dtype == object else want.tobytes()), name
