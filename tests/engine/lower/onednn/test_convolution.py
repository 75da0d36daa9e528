"""Convolutions whose spatial axes are turned, against the reference."""

import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, implementations, run
from tests.models import filled
from tests.processor import HAS_AVX512
from tightship import _core

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

TALL = {
    "a column": ("5, 33, 1", "7, 31, 1", "", (7, 5, 3, 1)),
    "strides, pads and dilations": (
        "5, 33, 1", "7, 17, 1", "strides = [2, 1], pads = [2, 0, 2, 0], dilations = [2, 3]",
        (7, 5, 3, 1),
    ),
    "groups": ("6, 33, 1", "4, 33, 1", "group = 2, pads = [1, 0, 1, 0]", (4, 3, 3, 1)),
    "one line of a volume": ("3, 4, 9, 1", "4, 3, 7, 1", "", (4, 3, 2, 3, 1)),
    "one pixel": ("5, 1, 1", "7, 1, 1", "", (7, 5, 1, 1)),
    "a column that is padded": ("5, 9, 1", "7, 9, 3", "pads = [1, 1, 1, 1]", (7, 5, 3, 1)),
}  # fmt: skip


@pytest.mark.parametrize("what", TALL)
@pytest.mark.parametrize("rest", ["y = Relu (a)", "b = Add (a, r) y = Relu (b)"])
def test_a_column_is_convolved_as_a_row(what: str, rest: str) -> None:
    before, after, options, weights = TALL[what]
    graph = graph_of(
        f"""g (float[2, {before}] x, float[2, {after}] r) => (float[2, {after}] y) {{
            a = Conv <{options or "group = 1"}> (x, w, v) {rest} }}""",
        w=filled(*weights),
        v=filled(weights[0]),
    )
    kernels = {kernel for operator, kernel, _ in implementations(graph)
               if operator.startswith("Conv")}  # fmt: skip
    assert kernels == {"onednn"} or not HAS_AVX512
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-4)


def test_a_transposed_convolution_of_a_column_is_turned_too() -> None:
    graph = graph_of(
        """g (float[2, 5, 9, 1] x) => (float[2, 4, 19, 1] y) {
            y = ConvTranspose <strides = [2, 1]> (x, w) }""",
        w=filled(5, 4, 3, 1),
    )
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not HAS_AVX512, reason="layouts differ without AVX-512")
def test_a_column_takes_as_much_memory_as_a_row() -> None:
    """The turned image has the bytes of the untouched one."""
    column, row = (
        graph_of(
            f"""g (float[1, 32, {size}] x) => (float[1, 32, {size}] y) {{
                a = Conv <pads = {pads}> (x, w) b = Relu (a) y = Conv <pads = {pads}> (b, w) }}""",
            w=filled(32, 32, *kernel),
        )
        for size, pads, kernel in (
            ("64, 1", "[1, 0, 1, 0]", (3, 1)), ("1, 64", "[0, 1, 0, 1]", (1, 3)),
        )
    )  # fmt: skip
    steps = [implementations(graph) for graph in (column, row)]
    assert [step[:2] for step in steps[0]] == [step[:2] for step in steps[1]]
