"""Windows whose pads follow from sizes, against the reference."""

from dataclasses import replace

import numpy as np
import pytest

from tests.engine.graphs import expected, graph_of, implementations, run
from tests.models import filled
from tests.processor import HAS_AVX512
from tightship import _core
from tightship.engine.lower.steps.window import Window, turned_axes

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

TRANSPOSED = [
    ("output_shape = [16, 12]", (16, 12)),
    ("output_shape = [14, 13], output_padding = [1, 1]", (14, 13)),
    ('output_shape = [15, 12], auto_pad = "SAME_UPPER"', (15, 12)),
    ('auto_pad = "SAME_UPPER"', (15, 12)),
    ('auto_pad = "SAME_LOWER"', (15, 12)),
    ('auto_pad = "VALID"', (16, 13)),
    ("pads = [1, 0, 2, 1]", (13, 12)),
]


@pytest.mark.parametrize(("options", "after"), TRANSPOSED, ids=[o for o, _ in TRANSPOSED])
def test_a_transposed_convolution_finds_its_pads(options, after):
    graph = graph_of(
        f"""g (float[2, 3, 5, 6] x) => (float[2, 4, {after[0]}, {after[1]}] y) {{
            y = ConvTranspose <strides = [3, 2], {options}> (x, w) }}""",
        w=filled(3, 4, 4, 3),
    )
    kernels = {kernel for operator, kernel, _ in implementations(graph)
               if operator == "ConvTranspose"}  # fmt: skip
    assert kernels == {"onednn"} or (kernels == {"numpy"} and not HAS_AVX512)
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pads", ["[0, 0, 0, 0]", "[1, 1, 1, 1]", "[1, 0, 2, 2]"])
def test_an_average_counts_padding_that_no_window_reaches(pads):
    graph = graph_of(f"""g (float[1, 8, 8, 9] x) => (float[1, 8, H, W] y) {{
        y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], count_include_pad = 1,
            pads = {pads}> (x) }}""")
    assert ("AveragePool", "onednn") in {(o, k) for o, k, _ in implementations(graph)}
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-4, atol=1e-5)


def test_an_axis_of_one_pixel_is_put_first() -> None:
    window = Window((3, 1), (2, 1), (1, 1), (1, 0), (1, 0))
    assert turned_axes(window, (9, 1), (5, 1)) == (1, 0)
    assert turned_axes(window, (1, 1), (1, 1)) == (0, 1)
    assert turned_axes(replace(window, begin=(1, 1)), (9, 1), (5, 1)) == (0, 1)
    assert window.turned((1, 0)) == Window((1, 3), (1, 2), (1, 1), (0, 1), (0, 1))
