"""Lone depthwise convolutions, which a kernel of our own computes plane by plane."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
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
from tightship.engine.lower.passes import convolve_planes
from tightship.engine.lower.passes.convolve_planes import TILE_FLOATS
from tightship.engine.lower.pipeline import run_passes
from tightship.engine.lower.selection import lower
from tightship.model import Model

INFINITY = float("inf")


def net(body, image=(2, 6, 17, 14), kernel=(3, 3), results=1, **weights):
    """Nodes from an image `x` to a `y`; `w` and `b` are the weights of its channels."""
    count = results * image[1]
    named = {"w": filled(count, 1, *kernel), "b": filled(count), **weights}
    sizes = ", ".join(map(str, image))
    axes = ", ".join("nchvd"[: len(image)])
    return graph_of(f"g (float[{sizes}] x) => (float[{axes}] y) {{ {body} }}", **named)


LONE = "c = Conv <group = 6, pads = [1, 1, 1, 1]> (x, w, b)"


@pytest.mark.parametrize(
    ("activation", "found", "attributes"),
    [
        ("y = Identity (c)", ["Identity"], ("", -INFINITY, INFINITY)),
        ("y = Relu (c)", [], ("", 0.0, INFINITY)),
        ("y = Clip (c, low, high)", [], ("", -0.5, 2.0)),
        ("s = Sigmoid (c) y = Mul (s, c)", [], ("Swish", -INFINITY, INFINITY)),
        ("y = HardSwish (c)", ["HardSwish"], ("", -INFINITY, INFINITY)),
        ("r = Relu (c) y = Add (r, x)", ["Add"], ("", 0.0, INFINITY)),
        ("s = Sigmoid (x) y = Mul (c, s)", [], None),
    ],
)
def test_activations_are_computed_before_the_result_is_written(activation, found, attributes):
    graph = net(f"{LONE} {activation}", low=np.float32(-0.5), high=np.float32(2))
    passed = run_passes(graph)
    node = node_named(passed, "DepthwiseConv")
    assert node.attributes["planes"] == 1
    if attributes is not None:
        assert tuple(node.attributes[name] for name in ("after", "low", "high")) == attributes
        assert operators(passed) == ["DepthwiseConv", *found]
    assert_close(run(graph), expected(graph))


@pytest.mark.parametrize(("channels", "found"), [(15, "Conv"), (16, "DepthwiseConv")])
def test_small_planes_are_convolved_side_by_side(channels, found):
    body = f"y = Conv <group = {channels}, pads = [2, 2, 2, 2]> (x, w, b)"
    graph = net(body, image=(1, channels, 7, 7), kernel=(5, 5))
    assert operators(run_passes(graph)) == [found]
    assert_close(run(graph), expected(graph))


def test_no_copy_is_left():
    graph = net(f"{LONE} y = Relu (c)")
    steps = lower(graph).steps
    assert [step.implementation for step in steps] == ["planes"]
    assert [step.scratch_bytes for step in steps] == [0]


def test_several_may_be_near_each_other():
    graph = net(
        f"{LONE} d = Relu (c) e = Concat <axis = 1> (d, x)"
        "f = Conv <group = 12, strides = [2, 2]> (e, v) y = Neg (f)",
        image=(2, 6, 40, 30),
        v=filled(12, 1, 2, 2),
    )
    assert operators(run_passes(graph)).count("DepthwiseConv") == 2
    assert_close(run(graph), expected(graph))


OTHERS = {
    "a convolution behind it": net(f"{LONE} y = Conv (c, v)", v=filled(4, 6, 1, 1)),
    "a pooling before it": net(
        "p = MaxPool <kernel_shape = [2, 2]> (x) y = Conv <group = 6> (p, w)"
    ),
    "an addend that is pooled": net(
        f"p = AveragePool <kernel_shape = [1, 1]> (x) {LONE} y = Add (c, p)"
    ),
    "channels last before it": net(
        "t = Transpose <perm = [0, 3, 1, 2]> (x) y = Conv <group = 17> (t, v)",
        image=(2, 13, 14, 17), v=filled(17, 1, 3, 3)
    ),
    "channels last behind it": net(f"{LONE} r = Relu (c) y = Transpose <perm = [0, 2, 3, 1]> (r)"),
    "not one group a channel": net("y = Conv <group = 3> (x, v)", v=filled(6, 2, 3, 3)),
    "many results of a row": net(
        "y = Conv (x, w)", image=(1, 1, 1000), kernel=(5,), results=4
    ),
    "few results": net(LONE.replace("c =", "y ="), image=(1, 6, 7, 7)),
    "three axes": net(
        "y = Conv <group = 6> (x, w)", image=(1, 6, 8, 8, 8), kernel=(3, 3, 3)
    ),
    "weights that are computed": net(
        "m = ReduceMean (x) v = Mul (m, w) y = Conv <group = 6> (x, v)"
    ),
    "a window past the tiles": net(
        f"y = Conv <dilations = [1, {TILE_FLOATS}]> (x, w)",
        image=(1, 1, 30, TILE_FLOATS + 9),
        kernel=(1, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_others_stay(case):
    assert not any(o.startswith("DepthwiseConv") for o in operators(run_passes(OTHERS[case])))
    assert_close(run(OTHERS[case]), expected(OTHERS[case]))


@st.composite
def convolutions(draw):
    """A depthwise convolution of any window, on any image, and how many threads compute it."""
    rank = draw(st.integers(1, 2))
    channels, results = draw(st.sampled_from([1, 2, 3, 17, 37])), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 7)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 3)) for _ in range(rank)]
    pads = [draw(st.integers(0, 4)) for _ in range(2 * rank)]
    strides = [draw(st.integers(1, 4)) for _ in range(rank)]
    most = draw(st.sampled_from([12, 70]))
    sizes = [
        max(1, (k - 1) * d + 1 - begin - end) + draw(st.integers(0, most))
        for k, d, begin, end in zip(kernel, dilations, pads[:rank], pads[rank:], strict=True)
    ]
    image = draw(st.integers(1, 2)), channels, *sizes
    attributes = f"group = {channels}, strides = {strides}, dilations = {dilations}, pads = {pads}"
    ending = draw(st.sampled_from(["y = Relu (c)", "s = Sigmoid (c) y = Mul (c, s)"]))
    assume(results * channels == 1 or channels > 1 or np.prod(kernel) > max(kernel))
    body = f"c = Conv <{attributes}> (x, w, b) {ending}"
    return net(body, image, kernel, results), draw(st.integers(1, 3))


def spaced(image, kernel, **attributes):
    """Make a case of one image and window."""
    said = ", ".join(f"{name} = {list(each)}" for name, each in attributes.items())
    return net(f"y = Conv <group = {image[1]}, {said}> (x, w, b)", image, kernel), 2


@settings(deadline=None, max_examples=80)
@given(convolutions())
@example(spaced((1, 2, 5, 3000), (3, 3), pads=(1, 1, 1, 1)))
@example(spaced((1, 2, 3000, 5), (3, 3), pads=(1, 1, 1, 1)))
@example(spaced((1, 2, 3000, 1), (9, 1), pads=(4, 0, 4, 0)))
@example(spaced((1, 1, 200, 200), (3, 3), dilations=(40, 9), pads=(40, 9, 40, 9)))
@example(spaced((1, 1, 90, 90), (31, 31), pads=(15, 15, 15, 15)))
@example(spaced((1, 3, 256, 128), (16, 16), strides=(16, 16)))
@example(spaced((1, 3, 64, 65), (1, 1), strides=(5, 5)))
@example(spaced((2, 37, 7, 7), (3, 3), pads=(1, 1, 1, 1)))
@example(spaced((1, 32, 7, 7), (5, 5), pads=(2, 2, 2, 2)))
@example(spaced((1, 48, 14, 14), (5, 5), pads=(2, 2, 2, 2), strides=(2, 2)))
@example(spaced((1, 20, 1, 1), (3, 3), pads=(1, 1, 1, 1)))
@example(spaced((1, 16, 2, 1), (7, 7), pads=(6, 6, 6, 6), dilations=(2, 2)))
@example(spaced((1, 16, 3, 3), (1, 1), pads=(2, 2, 2, 2), strides=(3, 3)))
@example(spaced((1, 16, 100), (9,), pads=(4, 4)))
def test_any_window_over_any_image_gives_what_numpy_gives(case):
    graph, threads = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolve_planes, "RESULTS_MIN", 1)
        assert "DepthwiseConv" in operators(run_passes(graph))
        compiled = prepared(graph, threads=threads)
    with Model(compiled, Bounds()) as model:
        assert_close(model.run(inputs_of(graph)), expected(graph))


@pytest.mark.parametrize("image", [(1, 1, 300, 40), (3, 5, 20, 7), (1, 2, 5000), (2, 600, 9, 9)])
def test_results_do_not_depend_on_how_many_threads_compute_them(image):
    kernel = (3,) * (len(image) - 2)
    graph = net(f"y = Conv <group = {image[1]}> (x, w, b)", image, kernel)
    results = []
    for threads in (1, 2, 3):
        with Model(prepared(graph, threads=threads), Bounds()) as model:
            results.append(model.run(inputs_of(graph)))
    np.testing.assert_array_equal(results[1]["y"], results[0]["y"])
    np.testing.assert_array_equal(results[2]["y"], results[0]["y"])


def test_nothing_beside_the_result_is_written():
    sizes = [[3, 5], [3, 5], [3, 3], [1, 1], [1, 1], [1, 1]]
    kernel = _core.NativeKernel.plane_convolution([1, 2, 1], sizes, False, (-INFINITY, INFINITY))
    assert [high for _, high in kernel.reach()] == [120, 72, 8, 120]
    assert kernel.scratch_bytes(2) == 0


@pytest.mark.parametrize(
    ("counts", "sizes"),
    [
        ([1, 2, 1], [[3, 5], [3, 5], [3, 3], [0, 1], [1, 1], [1, 1]]),
        ([1, 2, 1], [[3, 5], [0, 5], [3, 3], [1, 1], [1, 1], [1, 1]]),
        ([1, 0, 1], [[3, 5], [3, 5], [3, 3], [1, 1], [1, 1], [1, 1]]),
        ([1, 1, 1], [[3, 5], [3, 5], [3, 3], [1, 1], [1, 5000], [1, 1]]),
        ([1, 1 << 40, 1 << 20], [[3, 5], [3, 5], [3, 3], [1, 1], [1, 1], [1, 1]]),
        ([1, 1, 1], [[3, 5], [3, 5], [3, 3], [1, 1], [1, 1], [-1, 1]]),
    ],
)
def test_impossible_numbers_are_refused(counts, sizes):
    with pytest.raises(ValueError, match="a kernel"):
        _core.NativeKernel.plane_convolution(counts, sizes, False, (-INFINITY, INFINITY))
