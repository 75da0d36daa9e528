"""Operators on optionals, which are a value or None."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.reference import Make, ReferenceRun
from tightship.errors import GraphError


def _by_value(run: ReferenceRun) -> Make:
    """Run every node alike."""
    return lambda _node, _make_run: run


def _first(operands: Sequence[Any]) -> Any:  # noqa: ANN401
    return operands[0] if operands else None


@_by_value
def optional_kernel(operands: Sequence[Any]) -> list[Any]:
    return [_first(operands)]


@_by_value
def has_element(operands: Sequence[Any]) -> list[Any]:
    return [np.array(_first(operands) is not None)]


@_by_value
def get_element(operands: Sequence[Any]) -> list[Any]:
    value = _first(operands)
    if value is None:
        raise GraphError("OptionalGetElement was given an empty optional; it needs a value.")
    return [value]
