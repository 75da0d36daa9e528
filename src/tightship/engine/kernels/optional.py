"""Operators on optionals, which are a value or None."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.reference import ReferenceRun
from tightship.errors import GraphError


def _first(operands: Sequence[Any]) -> Any:  # noqa: ANN401
    return operands[0] if operands else None


def optional_kernel(operands: Sequence[Any]) -> list[Any]:
    return [_first(operands)]


def has_element(operands: Sequence[Any]) -> list[Any]:
    return [np.array(_first(operands) is not None)]


def get_element(operands: Sequence[Any]) -> list[Any]:
    value = _first(operands)
    if value is None:
        raise GraphError("OptionalGetElement was given an empty optional; it needs a value.")
    return [value]


OPTIONAL: Mapping[str, ReferenceRun] = {
    "Optional": optional_kernel,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
}
