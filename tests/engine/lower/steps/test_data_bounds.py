"""Bounds of results whose shapes depend on data, against what runs make."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tightship
from tests.engine.graphs import graph_of, lowered
from tests.models import parse
from tests.zoo.dynamic import detections

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
KEEP = np.array([True, True, True])

BODIES: Mapping[str, tuple[str, int]] = {
    "a matrix": ("y = NonZero (x)", 2 * 12 * 8),
    "rows": ("y = Compress <axis = 0> (x, keep)", 12 * 4),
    "elements": ("y = Compress (x, keep)", 12 * 4),
    "unique elements": ("y, i, j, k = Unique (x)", 12 * (4 + 3 * 8)),
    "unique rows": ("y, i, j, k = Unique <axis = 0> (x)", 12 * 4 + 3 * 3 * 8),
    "arithmetic": ("a = Compress <axis = 0> (x, keep) y = Mul (a, x)", 12 * 4),
    "joined": ("a = Compress <axis = 0> (x, keep) y = Concat <axis = 0> (a, x, a)", 36 * 4),
    "gathered": ("a = NonZero (keep) y = Gather (x, a)", 3 * 4 * 4),
    "turned": ("a = NonZero (x) y = Transpose (a)", 2 * 12 * 8),
    "summed": ("a = Compress <axis = 0> (x, keep) y = ReduceSum <keepdims = 0> (a, last)", 3 * 4),
    "a part": ("a = NonZero (x) y = Slice (a, zero, last, last)", 2 * 12 * 8),
    "the best": ("a = Compress <axis = 0> (x, keep) s = Shape (a) k = Gather (s, zero) "
                 "y, i = TopK <axis = 0> (a, k)", 12 * (4 + 8)),
}  # fmt: skip
ALL_KEPT = frozenset(BODIES) - {"a matrix", "turned", "a part", "elements"}
"""Bodies whose inputs let them reach the bound."""


def text_of(body: str) -> str:
    outputs = "y, i, j, k" if "Unique" in body else "y"
    return f"g (float[3, 4] x, bool[3] keep) => ({outputs}) {{ {body} }}"


CONSTANTS: dict[str, Any] = {"zero": np.array([0]), "last": np.array([1])}
HEADER = '<ir_version: 9, opset_import: ["" : 18]>'


@pytest.mark.parametrize("what", BODIES)
def test_a_step_says_what_its_results_take_at_most(what: str) -> None:
    body, most = BODIES[what]
    model = parse(text_of(body), HEADER, **CONSTANTS)
    with tightship.load(model.SerializeToString()) as loaded:
        reason = loaded.plan.steps[-1].dynamic_reason
        results = loaded.run({"x": X, "keep": KEEP})
    assert reason == f"shape depends on data; at most {most} bytes"
    taken = sum(array.nbytes for array in results.values())
    assert taken <= most
    assert taken == most or what not in ALL_KEPT or what == "the best"


def test_suppression_takes_what_its_limit_lets_it() -> None:
    with tightship.load(detections().model) as model:
        reasons = {step.operator: step.dynamic_reason for step in model.plan.steps}
    assert reasons["NonMaxSuppression"] == f"shape depends on data; at most {3 * 5 * 24} bytes"
    assert reasons["Squeeze"] == f"shape depends on data; at most {3 * 5 * 8} bytes"


def test_a_length_that_is_an_element_has_no_bound() -> None:
    graph = graph_of("g (int64[1] n, float x) => (float[m] y) { y = Expand (x, n) }")
    assert lowered(graph).steps[-1].dynamic_reason == "shape depends on data"
