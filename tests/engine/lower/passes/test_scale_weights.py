import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, node_named, operators, run
from tests.models import filled
from tightship.engine.lower.pipeline import run_passes


def scaled(
    shape=(1, 24, 7, 6), outputs=16, scales=None, attributes="", tail="y = Relu (c)", turned=False
):
    """An image times a scale for each channel, convolved."""
    scales = (shape[0], shape[1], 1, 1) if scales is None else scales
    product = "s, x" if turned else "x, s"
    return graph_of(
        f"""g (float[{", ".join(map(str, shape))}] x, float[{", ".join(map(str, scales))}] s)
            => (float[n, c, h, v] y) {{
            m = Mul ({product}) c = Conv <group = 1{attributes}> (m, w, b) {tail}
        }}""",
        w=filled(outputs, shape[1], 1, 1), b=filled(outputs),
    )  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("attributes", ["", ", strides = [2, 2]"])
def test_the_weights_are_scaled_instead_of_a_larger_image(turned, attributes):
    graph = scaled(attributes=attributes, turned=turned)
    node = node_named(run_passes(graph), "ScaledConv")
    assert (node.inputs, operators(run_passes(graph))) == (
        ("x", "w", "b", "s"),
        ["ScaledConv+Relu"],
    )
    assert_close(run(graph), expected(graph))


@pytest.mark.parametrize("channels", [1, 3, 16, 20, 33, 64, 100])
@pytest.mark.parametrize("outputs", [1, 5, 16, 24, 48, 65])
def test_any_number_of_channels_and_outputs_gives_what_numpy_gives(channels, outputs):
    graph = scaled((1, channels, 9, 9), outputs, tail="y = Sigmoid (c)")
    assert operators(run_passes(graph)) == ["ScaledConv+Sigmoid"]
    for without in ((), ("scale_weights",), ("library_layouts",)):
        assert_close(run(graph, without), expected(graph))


OTHERS = {
    "a small image": scaled((1, 24, 4, 4), 16),
    "several images": scaled((2, 24, 7, 6)),
    "a scale for each pixel": scaled(scales=(1, 24, 7, 6)),
    "one scale": scaled(scales=(1, 1, 1, 1)),
    "a row of scales": scaled(scales=(6,)),
    "the product is read twice": scaled((1, 16, 7, 6), tail="y = Add (c, m)"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_would_be_more_work_or_another_product_stays(case):
    graph = OTHERS[case]
    assert not any(name.startswith("ScaledConv") for name in operators(run_passes(graph)))
    assert_close(run(graph), expected(graph))


def test_a_wider_window_stays():
    graph = graph_of(
        """g (float[1, 8, 9, 9] x, float[1, 8, 1, 1] s) => (float[n, c, h, v] y) {
            m = Mul (x, s) y = Conv (m, w)
        }""",
        w=filled(4, 8, 3, 3),
    )
    assert operators(run_passes(graph)) == ["Mul", "Conv"]


def test_scales_of_each_run_are_the_ones_that_count():
    graph = scaled()
    inputs = [
        {"x": filled(1, 24, 7, 6), "s": np.full((1, 24, 1, 1), factor, np.float32)}
        for factor in (0.0, 1.0, 3.0)
    ]
    for each in inputs:
        assert_close(run(graph, inputs=each), expected(graph, each))
