"""ONNX's node suite by operator."""

import functools
from collections.abc import Mapping

import numpy as np

from tests.engine.kernels.node_suite import Case, cases


@functools.cache
def suite() -> Mapping[str, list[Case]]:
    """Return the cases on arrays of numbers, by operator."""
    found: dict[str, list[Case]] = {}
    for case in cases():
        arrays = all(isinstance(each, np.ndarray) for each in case.inputs if each is not None)
        if not case.node.domain and case.is_numeric and arrays:
            found.setdefault(case.node.operator, []).append(case)
    return found
