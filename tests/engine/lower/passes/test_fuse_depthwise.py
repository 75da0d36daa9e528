import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import (
    assert_close,
    expected,
    graph_of,
    inputs_of,
    node_named,
    operators,
    prepared,
    run,
)
from tests.models import filled
from tightship import _core
from tightship.engine.cache.bounds import Bounds
from tightship.engine.lower.pipeline import run_passes
from tightship.model import Model

needs_onednn = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

WIDE = "y = Conv <group = 6, pads = [1, 1, 1, 1]> (x, w, b)"
SWISHED = "e = Conv (x, we) g = Sigmoid (e) a = Mul (e, g)" + WIDE.replace("(x,", "(a,")


def net(body, shape=(1, 6, 7, 9), dtype="float", result="y", **weights):
    """Nodes from an image `x` to a `y` of any shape; `w` and `b` are weights of six channels."""
    named = {"w": filled(6, 1, 3, 3), "b": filled(6), **weights}
    sizes = ", ".join(map(str, shape))
    return graph_of(
        f"g ({dtype}[{sizes}] x) => ({dtype}[n, c, h, v] {result}) {{ {body} }}", **named
    )


def excited(channels, size, kernel, batch=1):
    """A block as EfficientNet has it: expand, convolve each channel, squeeze, excite, project."""
    wide = 3 * channels
    pad = kernel // 2
    return graph_of(
        f"""g (float[{batch}, {channels}, {size}, {size}] x) => (float[n, c, h, v] y) {{
            e = Conv (x, we) es = Sigmoid (e) ea = Mul (e, es)
            d = Conv <group = {wide}, pads = [{pad}, {pad}, {pad}, {pad}]> (ea, wd, bd)
            ds = Sigmoid (d) da = Mul (d, ds)
            p = GlobalAveragePool (da) q = Conv (p, wq) r = Relu (q) s = Conv (r, ws)
            gate = Sigmoid (s)
            m = Mul (gate, da) o = Conv (m, wp, bp) y = Add (o, x)
        }}""",
        we=filled(wide, channels, 1, 1), wd=filled(wide, 1, kernel, kernel), bd=filled(wide),
        wq=filled(2, wide, 1, 1), ws=filled(wide, 2, 1, 1), wp=filled(channels, wide, 1, 1),
        bp=filled(channels),
    )  # fmt: skip


def test_a_block_becomes_one_operator_for_its_depths_and_one_that_scales_weights():
    found = operators(run_passes(excited(8, 9, 3)))
    assert found == [
        "Conv", "DepthwiseConv", "GlobalAveragePool", "Conv+Relu", "Conv+Sigmoid",
        "ScaledConv+Add",
    ]  # fmt: skip
    node = node_named(run_passes(excited(8, 9, 3)), "DepthwiseConv")
    assert (node.attributes["before"], node.attributes["after"]) == ("Swish", "Swish")


def test_only_means_of_rows_are_averaged():
    graph = run_passes(excited(8, 9, 3))
    depthwise, pooling = (node_named(graph, n) for n in ("DepthwiseConv", "GlobalAveragePool"))
    assert pooling.inputs == depthwise.outputs[1:]
    assert graph.value(pooling.inputs[0]).static_shape == (1, 24, 9, 1)


@pytest.mark.parametrize("shape", [(8, 9, 3), (5, 14, 5), (11, 4, 3), (16, 7, 5)])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_block_gives_the_same_with_and_without_the_operators(shape, batch):
    graph = excited(*shape, batch)
    wanted = expected(graph)
    for without in ((), ("fuse_depthwise",), ("scale_weights",), ("library_layouts",)):
        assert_close(run(graph, without), wanted)


@pytest.mark.parametrize(
    ("activation", "attributes"),
    [
        ("y = Relu (c)", ("", 0.0, float("inf"))),
        ("y = Clip (c, low, high)", ("", -0.5, 2.0)),
        ("y = Clip (c, , high)", ("", -float("inf"), 2.0)),
        ("s = Sigmoid (c) y = Mul (s, c)", ("Swish", -float("inf"), float("inf"))),
    ],
)
def test_an_activation_is_computed_before_the_result_is_written(activation, attributes):
    bounds = {"low": np.float32(-0.5), "high": np.float32(2)}
    graph = net(SWISHED.replace("y =", "c =") + activation, we=filled(6, 6, 1, 1), **bounds)
    node = node_named(run_passes(graph), "DepthwiseConv")
    assert tuple(node.attributes[name] for name in ("after", "low", "high")) == attributes
    assert_close(run(graph), expected(graph))


AFTER = " s = Sigmoid (c) y = Mul (s, c)"
OTHERS = {
    "no Swish": net(WIDE.replace("y =", "c =") + "y = Relu (c)"),
    "not one group a channel": net("c = Conv <group = 3> (x, w2)" + AFTER, w2=filled(6, 2, 3, 3)),
    "two results a channel": net("c = Conv <group = 6> (x, w2)" + AFTER, w2=filled(12, 1, 3, 3)),
    "weights that are computed": net(
        "v = ReduceMean (x) k = Mul (v, w) c = Conv <group = 6> (x, k)" + AFTER
    ),
    "an activation that is not covered": net(
        SWISHED.replace("y =", "c =") + "y = Elu (c)", we=filled(6, 6, 1, 1)
    ),
    "limits the wrong way round": net(
        SWISHED.replace("y =", "c =") + "y = Clip (c, low, high)", we=filled(6, 6, 1, 1),
        low=np.float32(1), high=np.float32(-1),
    ),
    "another addend": net(
        SWISHED.replace("y =", "c =") + "y = Add (x, c)", we=filled(6, 6, 1, 1)
    ),
    "integers underneath": net(
        "q = QuantizeLinear (x, s) d = DequantizeLinear (q, s)"
        "c = Conv <group = 6> (d, w) g = Sigmoid (c) y = Mul (g, c)",
        s=np.float32(0.1),
    ),
    "nothing in it": net(WIDE.replace("y =", "c =") + AFTER, shape=(0, 6, 7, 9)),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_such_convolution_stays(case):
    assert not any(o.startswith("DepthwiseConv") for o in operators(run_passes(OTHERS[case])))


def test_a_swish_that_others_read_too_stays_where_it_is():
    alone = net(SWISHED, we=filled(6, 6, 1, 1))
    shared = net(SWISHED.replace("y =", "c =") + "y = Add (a, c)", we=filled(6, 6, 1, 1))
    assert node_named(run_passes(alone), "DepthwiseConv").attributes["before"] == "Swish"
    assert "Conv+Swish" in operators(run_passes(shared))
    for graph in (alone, shared):
        assert_close(run(graph), expected(graph))


def swish(name, result):
    """Write the two nodes of a Swish."""
    return f" {result}s = Sigmoid ({name}) {result} = Mul ({name}, {result}s) "


@st.composite
def convolutions(draw):
    """A depthwise convolution of any window, on any image, and how many threads compute it."""
    channels = draw(st.sampled_from([1, 3, 8, 15, 16, 17, 31, 33, 48, 70]))
    kernel = [draw(st.integers(1, 5)) for _ in range(2)]
    dilations = [draw(st.integers(1, 3)) for _ in range(2)]
    pads = [draw(st.integers(0, 4)) for _ in range(4)]
    strides = [draw(st.integers(1, 4)) for _ in range(2)]
    sizes = [
        max(1, (k - 1) * d + 1 - begin - end) + draw(st.integers(0, 12))
        for k, d, begin, end in zip(kernel, dilations, pads[:2], pads[2:], strict=True)
    ]
    before, after = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    attributes = f"group = {channels}, strides = {strides}, dilations = {dilations}, pads = {pads}"
    shape = draw(st.integers(1, 3)), 2, *sizes
    return net(
        f"e = Conv (x, we) {swish('e', 'a') if before else 'a = Relu (e)'}"
        f"c = Conv <{attributes}> (a, w) {swish('c', 'y') if after else 'y = Relu (c)'}",
        shape, we=filled(channels, 2, 1, 1), w=filled(channels, 1, *kernel),
    ), draw(st.integers(1, 3))  # fmt: skip


@needs_onednn
@settings(deadline=None, max_examples=60)
@given(convolutions())
def test_any_window_over_any_image_gives_what_numpy_gives(case):
    graph, threads = case
    assert "DepthwiseConv" in operators(run_passes(graph))
    with Model(prepared(graph, threads=threads), Bounds()) as model:
        assert_close(model.run(inputs_of(graph)), expected(graph))


@needs_onednn
def test_results_do_not_depend_on_how_many_threads_compute_them():
    for graph in (excited(16, 30, 3), excited(16, 5, 5), excited(8, 12, 5, batch=3)):
        results = []
        for threads in (1, 2, 3):
            with Model(prepared(graph, ("scale_weights",), threads), Bounds()) as model:
                results.append(model.run(inputs_of(graph)))
        assert_close(results[1], results[0])
        assert_close(results[2], results[0])


@needs_onednn
def test_swish_keeps_what_is_not_a_number_and_is_finite_far_out():
    graph = net(
        "e = Conv (x, we) s = Sigmoid (e) a = Mul (e, s) y = Conv <group = 1> (a, w1)",
        (1, 1, 1, 8), we=np.ones((1, 1, 1, 1), np.float32), w1=np.ones((1, 1, 1, 1), np.float32),
    )  # fmt: skip
    far = np.array([-np.inf, -1e30, -200, -88, 88, 200, 1e30, np.nan], np.float32)
    found = run(graph, inputs={"x": far.reshape(1, 1, 1, 8)})["y"].reshape(-1)
    np.testing.assert_allclose(found, [0, 0, 0, 0, 88, 200, 1e30, np.nan], rtol=1e-6, atol=1e-30)
