import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.lift_gemm import lift_gemm
from tightship.engine.lower.pipeline import run_passes

GEMM = "f = Reshape (x, rows) g = Gemm (f, w, b)"


def net(body=GEMM, tail="r = Reshape (g, back) y = Gelu (r)", bias=(4,), weight=(6, 4)):
    weights = {"w": filled(*weight), "b": filled(*bias), "rows": np.array([-1, 6]),
               "back": np.array([2, 3, 4]), "across": np.array([2, 6, 2])}  # fmt: skip
    used = {n: v for n, v in weights.items() if n in f"{body} {tail}".replace("back", " back")}
    return graph_of(f"g (float[2, 3, 6] x) => (float[p, q, r] y) {{ {body} {tail} }}", **used)


SPELLINGS = {
    "with a bias": (net(), ["MatMul", "Add", "Gelu"]),
    "without": (net("f = Reshape (x, rows) g = Gemm (f, w)"), ["MatMul", "Gelu"]),
    "transposed": (net("f = Reshape (x, rows) g = Gemm <transB = 1> (f, w, b)", weight=(4, 6)),
                   ["MatMul", "Add", "Gelu"]),
}  # fmt: skip


@pytest.mark.parametrize("decomposition", SPELLINGS)
def test_a_product_of_flattened_rows_is_one_of_the_whole(decomposition):
    graph, wanted = SPELLINGS[decomposition]
    lifted = lift_gemm(graph)
    assert operators(lifted) == wanted
    assert_close(run(lifted), expected(graph))


def test_rows_that_were_something_else_before_are_stacked():
    graph = graph_of(
        """g (float[2, 3, 2, 3] x) => (float[2, 3, 4] y) {
            f = Reshape (x, rows) g = Gemm (f, w, b) r = Reshape (g, back) y = Gelu (r)
        }""",
        w=filled(6, 4), b=filled(4), rows=np.array([-1, 6]), back=np.array([2, 3, 4]),
    )  # fmt: skip
    lifted = lift_gemm(graph)
    assert operators(lifted) == ["Reshape", "Reshape", "MatMul", "Add", "Gelu"]
    assert_close(run(lifted), expected(graph))


def test_what_follows_runs_inside_the_product():
    assert operators(run_passes(net())) == ["MatMul+Add+Gelu"]


def test_rows_that_others_read_too_stay_for_them():
    graph = net(tail="r = Reshape (g, back) h = Tanh (f) k = Reshape (h, sum) l = ReduceSum (k) "
                     "y = Add (r, l)".replace("sum", "rows"))  # fmt: skip
    lifted = lift_gemm(graph)
    assert "Gemm" not in operators(lifted)
    assert_close(run(lifted), expected(graph))


OTHERS = {
    "scaled": net("f = Reshape (x, rows) g = Gemm <alpha = 0.5> (f, w, b)"),
    "cut across": net(tail="r = Reshape (g, across) y = Gelu (r)"),
    "read twice": net(tail="r = Reshape (g, back) h = ReduceSum (g) y = Add (r, h)"),
    "a bias for each row": net(bias=(6, 4)),
    "an activation between": net(tail="h = Gelu (g) y = Reshape (h, back)"),
}


@pytest.mark.parametrize("graph", OTHERS.values(), ids=OTHERS)
def test_other_products_stay(graph):
    assert "Gemm" in operators(lift_gemm(graph))
