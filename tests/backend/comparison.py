"""Outputs of a case of ONNX's suite, compared as ONNX's own runner compares them."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner

import tightship.backend
from tightship.errors import TightshipError

UNREPEATABLE = frozenset(
    f"test_bernoulli{kind}"
    for kind in ("", "_double", "_double_expanded", "_expanded", "_seed", "_seed_expanded")
)
"""Draw numbers from a generator that the standard leaves open: only types are compared."""

INCOMPARABLE = frozenset({"test_loop16_seq_none"})
"""Sequences with a scalar, of which ONNX's runner takes the length: every backend fails there,
`onnx.reference` as well. Here their elements are compared."""

IMPOSSIBLE = UNREPEATABLE | INCOMPARABLE
"""Models that ONNX's runner passes by chance, if at all."""


def failure_of(case: TestCase, without: Collection[str] = ()) -> str | None:
    """Return why a case fails, with passes left out; None where it passes."""
    try:
        rep = tightship.backend.prepare(case.model, without=without)
        for inputs, expected in case.data_sets:
            outputs = tuple(flat(rep.run([value_of(stored) for stored in inputs])))
            wanted = tuple(flat(tuple(value_of(stored) for stored in expected)))
            atol = 1.0 if case.name in UNREPEATABLE else case.atol
            assert [each is None for each in outputs] == [each is None for each in wanted]
            Runner.assert_similar_outputs(*map(_present, (wanted, outputs)), case.rtol, atol)
    except (AssertionError, TightshipError) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


def value_of(stored: Any) -> Any:
    """Return a stored value of the suite, a tensor message as an array."""
    return numpy_helper.to_array(stored) if isinstance(stored, onnx.TensorProto) else stored


def flat(value: Any) -> Iterator[Any]:
    """Yield the tensors of outputs in order, each sequence as its length and its elements."""
    if isinstance(value, (list, tuple)):
        yield from (np.array(len(value)), *(each for item in value for each in flat(item)))
    else:
        yield value


def _present(values: Iterable[Any]) -> list[Any]:
    """Keep what is not an absent optional."""
    return [value for value in values if value is not None]
