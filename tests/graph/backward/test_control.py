import numpy as np
import pytest

from tests.graph.backward.differences import check, graph_of, numbers
from tightship.errors import GraphError
from tightship.graph.backward import backward, parameters

CUMULATED = """net (double[2,3] x, double[3,3] w, double[3] b) => (double[2,3] last, double ys) {
    n = Constant <value = int64 {%d}> ()
    last, ys = Loop <body = turn (int64 i, bool c, double[2,3] s) => (bool d, double[2,3] t, y) {
        d = Identity (c)
        p = MatMul (s, w)
        k = Cast <to = 11> (i)
        q = Mul (p, k)
        r = Add (q, b)
        t = Tanh (r)
        y = Mul (t, x)
    }> (n, , x)
}"""
"""A loop whose iterations read their number, captures, and what they started with."""

SCANNED = """net (double[2,4] s, double[4,5,2] x, double[4,4] w, double z)
    => (double last, double ys) {
    sum, last, ys = Scan <num_scan_inputs = 1, scan_input_axes = [%d], scan_input_directions = [%d],
        scan_output_axes = [%d], scan_output_directions = [%d],
        body = turn (double m, double[2,4] h, double[4,2] v) => (double o, double[2,4] t, y) {
            o = Add (m, z)
            u = Transpose (v)
            p = MatMul (h, w)
            q = Add (p, u)
            t = Tanh (q)
            y = Mul (t, m)
        }> (z, s, x)
}"""

CHOSEN = """net (double[2,3] x, double[3] v, double z) => (double[2,3] y, double[2,3] e) {
    zero = Constant <value = double {0.0}> ()
    c = Greater (z, zero)
    y, e = If <
        then_branch = one () => (double[2,3] a, double[2,3] f) {
            m = Mul (x, v)
            a = Tanh (m)
            f = Mul (a, a)
        },
        else_branch = other () => (double[2,3] a, double[2,3] f) {
            a = Identity (x)
            f = Mul (x, z)
        }> (c)
}"""


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_counted_loop_has_the_slopes_of_its_iterations(count):
    graph = graph_of(CUMULATED % count)
    made = check(graph, numbers(graph), graph.inputs)
    scans = [node for node in made.nodes if node.operator == "Scan"]
    assert len(scans) == 2
    assert scans[0].outputs == ("last", "ys", "last.s")
    assert made.value("last.s").shape == (count, 2, 3)


@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("place", [0, 2, -1])
@pytest.mark.parametrize("back", [0, 1])
def test_a_scan_has_the_slopes_of_its_iterations(axis, direction, place, back):
    graph = graph_of(SCANNED % (axis, direction, place, back))
    check(graph, numbers(graph), graph.inputs)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_choice_has_the_slopes_of_what_was_chosen(sign):
    graph = graph_of(CHOSEN)
    feeds = {**numbers(graph), "z": np.array(sign)}
    made = check(graph, feeds, graph.inputs)
    assert [node.operator for node in made.nodes].count("If") == 2


def test_what_is_given_may_be_a_number_that_the_branch_writes_too():
    graph = graph_of("""net (double x) => (double y) {
        zero = Constant <value = double {0.0}> ()
        c = Greater (x, zero)
        y = If <then_branch = one () => (double a) { a = Exp (x) },
                else_branch = other () => (double a) { a = Reciprocal (x) }> (c)
    }""")
    check(graph, {"x": np.array(0.7)}, ["x"])
    check(graph, {"x": np.array(-0.7)}, ["x"])


NESTED = """net (double[3] x, double[3] w) => (double[3] y) {
    n = Constant <value = int64 {3}> ()
    zero = Constant <value = double {0.0}> ()
    y = Loop <body = turn (int64 i, bool c, double[3] s) => (bool d, double[3] t) {
        d = Identity (c)
        q = ReduceSum <keepdims = 0> (s)
        k = Greater (q, zero)
        r = If <
            then_branch = one () => (double[3] a) { m = Mul (s, w)  a = Sin (m) },
            else_branch = other () => (double[3] b) {
                two = Constant <value = int64 {2}> ()
                b = Loop <body = inner (int64 j, bool e, double[3] u) => (bool f, double[3] v) {
                    f = Identity (e)
                    p = Sub (u, w)
                    v = Cos (p)
                }> (two, , s)
            }> (k)
        t = Sub (r, x)
    }> (n, , x)
}"""


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_graphs_within_graphs_have_their_slopes(seed):
    graph = graph_of(NESTED)
    check(graph, numbers(graph, seed), graph.inputs, tolerance=1e-4)


def test_iterations_that_read_nothing_of_the_forward_pass_keep_nothing():
    graph = graph_of("""net (double[3] x, double[4,3] r) => (double[3] y) {
        y = Scan <num_scan_inputs = 1, body = turn (double[3] s, double[3] v) => (double[3] t) {
            t = Sub (s, v)
        }> (x, r)
    }""")
    made = check(graph, numbers(graph), graph.inputs)
    assert made.nodes[0].outputs == ("y",)
    made = check(graph, numbers(graph), ["x"])
    assert made.nodes[-1].outputs == ("d(x)",)


def test_what_a_body_knows_of_weights_is_left_out():
    graph = graph_of(
        """net (double[2] x) => (double[2] y) {
        n = Constant <value = int64 {2}> ()
        y = Loop <body = turn (int64 i, bool c, double[2] s) => (bool d, double[2] t) {
            d = Identity (c)
            v = Mul (w, w)
            t = Mul (s, v)
        }> (n, , x)
    }""",
        w=np.array([1.0, 2.0]),
    )
    made = backward(graph, ["y"], ["w"])
    bodies = [body for node in made.nodes for body in node.subgraphs]
    assert "v" in graph.nodes[0].subgraphs[0].known
    assert all("v" not in body.known for body in bodies)


@pytest.mark.parametrize(
    ("count", "goes_on"), [("n", "c"), ("three", "less")], ids=["count", "condition"]
)
def test_a_loop_that_data_ends_is_refused(count, goes_on):
    graph = graph_of(f"""net (double[2] x, int64 n) => (double[2] y) {{
        three = Constant <value = int64 {{3}}> ()
        one = Constant <value = double {{1.0}}> ()
        y = Loop <body = turn (int64 i, bool c, double[2] s) => (bool d, double[2] t) {{
            t = Exp (s)
            q = ReduceSum <keepdims = 0> (t)
            less = Less (q, one)
            d = Identity ({goes_on})
        }}> ({count}, , x)
    }}""")
    with pytest.raises(GraphError, match=r"`Loop_y`.*end by their count alone.*`M` a constant"):
        backward(graph, ["y"], ["x"])


def test_weights_are_distinguished_from_settings_by_their_use_in_a_body():
    graph = graph_of(
        """net (bool k, float[1,1,2] x) => (float y) {
        y = If <then_branch = one () => (float a) { a = Resize <mode = "linear"> (x, , scales) },
                else_branch = other () => (float b) { c = Mul (x, w)  b = Mul (c, one) }> (k)
    }""",
        scales=np.array([1, 1, 2], np.float32),
        w=np.array([1, 2], np.float32),
        one=np.array(1, np.float32),
    )
    assert parameters(graph) == ("w",)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_settings_that_lie_around_a_body_are_known_in_its_gradient(sign):
    graph = graph_of(
        """net (double[2,3] x, double z) => (double[2,3] y) {
        k = Greater (z, zero)
        y = If <then_branch = one () => (double[2,3] a) {
            s = ReduceSum <keepdims = 1> (x, axis)
            a = Mul (x, s)
        }, else_branch = other () => (double[2,3] b) {
            b = Scan <num_scan_inputs = 1, body = turn (double[3] v) => (double[3] c) {
                t = ReduceSum <keepdims = 1> (v, first)
                c = Mul (v, t)
            }> (x)
        }> (k)
    }""",
        axis=np.array([1]),
        first=np.array([0]),
        zero=np.array(0.0),
    )
    check(graph, {**numbers(graph), "z": np.array(sign)}, ["x"])
