"""Convolutions of one image that are added, which become one convolution."""

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.pipeline import run_passes

SIX = {
    "w": filled(6, 6, 3, 3), "w2": filled(6, 6, 3, 3) * 2, "b": filled(6), "p": filled(6, 6, 1, 1),
    "s": filled(6), "t": filled(6) + 1, "m": filled(6) - 1, "v": np.abs(filled(6)) + 0.5,
    "d": filled(6, 1, 3, 3), "e": filled(6, 1, 1, 1), "g": filled(6, 3, 3, 3),
    "row": filled(6, 6, 1, 3), "even": filled(6, 6, 2, 2),
}  # fmt: skip
WIDE = "pads = [1, 1, 1, 1]"
NORM = "n = BatchNormalization (x, s, t, m, v)"


def net(body, image=(2, 6, 8, 9), **weights):
    sizes = ", ".join(map(str, image))
    named = {name: each for name, each in {**SIX, **weights}.items() if name in body}
    return graph_of(f"g (float[{sizes}] x) => (float[n, c, h, u] y) {{ {body} }}", **named)


MERGED = {
    "two of a size": f"a = Conv <{WIDE}> (x, w, b) c = Conv <{WIDE}> (x, w2) y = Add (a, c)",
    "a smaller one first": f"a = Conv (x, p, b) c = Conv <{WIDE}> (x, w, b) y = Add (a, c)",
    "a row": f"a = Conv <pads = [0, 1, 0, 1]> (x, row) c = Conv <{WIDE}> (x, w) y = Add (c, a)",
    "a row at the edge": (
        f"a = Conv <pads = [1, 1, -0, 1]> (x, row2) c = Conv <{WIDE}> (x, w) y = Add (c, a)"
    ),
    "a normalization": f"{NORM} c = Conv <{WIDE}> (x, w, b) y = Add (n, c)",
    "the image": f"a = Conv (x, p) f = Add (a, x) c = Conv <{WIDE}> (x, w, b) y = Add (f, c)",
    "all in one": (
        f"{NORM} a = Conv <{WIDE}> (x, w) c = Conv (x, p) q = Conv <{WIDE}> (x, w2, b)"
        "f = Sum (a, n, c) y = Add (f, q)"
    ),
    "each channel": (
        f"{NORM} a = Conv <group = 6, {WIDE}> (x, d, b) c = Conv <group = 6> (x, e)"
        "f = Add (c, a) y = Add (f, n)"
    ),
    "groups": f"{NORM} a = Conv <group = 2, {WIDE}> (x, g) y = Add (a, n)",
    "strides": (
        f"a = Conv <strides = [2, 2], {WIDE}> (x, w) c = Conv <strides = [2, 2]> (x, p)"
        "y = Add (a, c)"
    ),
    "dilations": (
        "a = Conv <dilations = [2, 2], pads = [2, 2, 2, 2]> (x, w) c = Conv (x, p) y = Add (a, c)"
    ),
    "a number behind it": (
        f"a = Conv <{WIDE}> (x, w, b) c = Conv <{WIDE}> (x, w2) f = Add (a, c) y = Add (f, z)"
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_one_convolution_is_left(case):
    edge = filled(6, 6, 2, 3)
    graph = net(MERGED[case], row2=edge, z=np.float32(0.5))
    assert operators(run_passes(graph, ["convolve_planes"])) == ["Conv"]
    for without in ((), ("merge_convolutions",)):
        assert_close(run(graph, without), expected(graph))


def test_others_of_a_sum_are_added_to_it():
    graph = net(
        f"k = Sin (x) a = Conv <{WIDE}> (x, w) f = Add (k, a) c = Conv <{WIDE}> (x, w2)"
        f"q = Conv <{WIDE}> (k, w) h = Conv (k, p) i = Add (q, h) j = Add (f, i) l = Add (c, j)"
        "o = Cos (x) y = Add (l, o)"
    )
    found = operators(run_passes(graph, ["fuse_residual"]))
    assert sorted(found) == ["Add", "Add", "Conv", "Conv", "Cos", "Sin"]
    assert_close(run(graph), expected(graph))


def test_a_long_sum_is_one():
    count = 2000
    terms = "".join(f"a{i} = Conv (x, p) s{i + 1} = Add (s{i}, a{i}) " for i in range(count))
    graph = net(f"s0 = Conv (x, p) {terms} y = Relu (s{count})", (1, 6, 2, 2), p=filled(6, 6, 1, 1))
    passed = run_passes(graph, ["common_subexpressions"])
    assert [each.split("+")[0] for each in operators(passed)] == ["Conv"]


OTHERS = {
    "another image": (
        f"k = Neg (x) a = Conv <{WIDE}> (x, w) c = Conv <{WIDE}> (k, w) y = Add (a, c)"
    ),
    "the image alone": f"c = Conv <{WIDE}> (x, w) y = Add (c, x)",
    "read twice": (
        f"a = Conv <{WIDE}> (x, w) c = Conv <{WIDE}> (x, w2) f = Add (a, c) h = Sin (a)"
        "y = Mul (f, h)"
    ),
    "other groups": f"a = Conv <{WIDE}> (x, w) c = Conv <group = 6, {WIDE}> (x, d) y = Add (a, c)",
    "other dilations": (
        f"a = Conv <{WIDE}> (x, w) c = Conv <dilations = [2, 2], pads = [2, 2, 2, 2]> (x, w2)"
        "y = Add (a, c)"
    ),
    "beside the largest": (
        "a = Conv <pads = [2, 0, 0, 2]> (x, w) c = Conv <pads = [0, 2, 2, 0]> (x, w2)"
        "y = Add (a, c)"
    ),
    "a step between its places": (
        "a = Conv <dilations = [2, 2], pads = [3, 3, 1, 1]> (x, w) c = Conv (x, p) y = Add (a, c)"
    ),
    "weights that are computed": (
        f"a = Conv <{WIDE}> (x, w) r = ReduceMean (x) l = Mul (w2, r)"
        f"c = Conv <{WIDE}> (x, l) y = Add (a, c)"
    ),
    "an image of other strides": (
        f"a = Conv <strides = [2, 2], {WIDE}> (x, w) k = MaxPool <kernel_shape = [2, 2],"
        "strides = [2, 2], ceil_mode = 1> (x) y = Add (a, k)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_other_sums_stay(case):
    graph = net(OTHERS[case])
    with_it, without = (
        operators(run_passes(graph, left_out)) for left_out in ((), ("merge_convolutions",))
    )
    assert with_it == without
    assert_close(run(graph), expected(graph))
