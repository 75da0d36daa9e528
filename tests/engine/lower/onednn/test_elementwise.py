"""Arithmetic on short rows: by which kernel."""

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, implementations, prepared, run
from tests.models import filled

SHORT = [((40, 2), ()), ((40, 5), (5,)), ((3, 50, 21), (1,)), ((40, 7), (1, 7))]
LONG = [((40, 33), ()), ((40, 64), (64,)), ((40, 5), (40, 1)), ((40, 5), (40, 5)), ((7,), ())]


def graph(shape, other, operator="Mul"):
    dims = ", ".join(map(str, shape))
    text = f"g (float[{dims}] x) => (float[{dims}] y) {{ y = {operator} (x, k) }}"
    return graph_of(text, k=np.asarray(filled(*other)))


@pytest.mark.parametrize(("shape", "other"), [*SHORT, *LONG])
def test_short_rows_with_one_number_or_row_are_the_cores(shape, other):
    made = graph(shape, other)
    ((_, kernel, _),) = implementations(made)
    assert kernel == ("native" if (shape, other) in SHORT else "onednn")
    assert_close(run(made), expected(made))


@pytest.mark.parametrize("operator", ["Add", "Sub", "Div", "Mul"])
def test_short_rows_are_overwritten_as_the_library_overwrites_them(operator):
    text = (
        "g (float[400, 4] x) => (float[400, 4] y) "
        f"{{ t = Tanh (x) u = {operator} (t, k) y = Exp (u) }}"
    )
    made = graph_of(text, k=np.asarray(filled(4)) + np.float32(2))
    peaks = [prepared(made, without).placement.arena_bytes for without in ((), ("native",))]
    assert peaks[0] <= peaks[1]
