import re

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tightship.engine.lower.passes.common_subexpressions import common_subexpressions

WEIGHTS = {
    "shape": np.array([2, 3]), "zeros": np.array([0, 0]), "ends": np.array([9, 9]),
    "axes": np.array([0, 1]), "ones": np.array([1, 1]), "back": np.array([1, -1]),
    "last": np.array([9, -9]), "none": np.array([0, 0, 0, 0]), "cut": np.array([0, 1, 0, -1]),
    "half": np.array(0.5, np.float32), "first": np.array([0, -1]),
}  # fmt: skip


def net(body, outputs="y"):
    """Build a graph from `t`, which is computed, to `y`."""
    declared = ", ".join(f"float[2, 3] {name}" for name in outputs.split())
    used = {n: v for n, v in WEIGHTS.items() if re.search(rf"\b{n}\b", body)}
    return graph_of(f"g (float[2, 3] x) => ({declared}) {{ t = Sin (x) {body} }}", **used)


NOTHING = {
    "Identity": "n = Identity (t)",
    "Cast": "n = Cast <to = 1> (t)",
    "Reshape": "n = Reshape (t, shape)",
    "Transpose": "n = Transpose <perm = [0, 1]> (t)",
    "Expand": "n = Expand (t, ones)",
    "Slice": "n = Slice (t, zeros, ends)",
    "Pad": "n = Pad (t, none)",
    "Dropout": "n = Dropout (t)",
    "Concat": "n = Concat <axis = 0> (t)",
    "several": "a = Identity (t) b = Reshape (a, shape) n = Cast <to = 1> (b)",
}


@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING)
def test_what_changes_nothing_is_dropped(body):
    graph = net(f"{body} y = Cos (n)")
    dropped = common_subexpressions(graph)
    assert operators(dropped) == ["Sin", "Cos"]
    assert_close(run(dropped), expected(graph))


SOMETHING = {
    "turned": "n = Transpose <perm = [1, 0]> (t) m = Transpose (n) y = Cos (m)",
    "backwards": "n = Slice (t, first, last, axes, back) y = Cos (n)",
    "shifted": "n = Pad (t, cut) y = Cos (n)",
    "scaled": "n = Mul (t, half) y = Cos (n)",
}


@pytest.mark.parametrize("body", SOMETHING.values(), ids=SOMETHING)
def test_what_changes_something_stays(body):
    graph = net(body)
    dropped = common_subexpressions(graph)
    assert operators(dropped) == operators(graph)
    assert_close(run(dropped), expected(graph))


def test_an_output_keeps_its_name():
    graph = net("y = Identity (t) z = Cos (y) w = Identity (z)", "y w")
    dropped = common_subexpressions(graph)
    assert operators(dropped) == operators(graph)
    assert_close(run(dropped), expected(graph))


def test_what_is_done_twice_is_done_once():
    graph = net("a = Mul (t, half) b = Mul (t, half) c = Tanh (a) d = Tanh (b) y = Add (c, d)")
    dropped = common_subexpressions(graph)
    assert operators(dropped) == ["Sin", "Mul", "Tanh", "Add"]
    assert_close(run(dropped), expected(graph))


@pytest.mark.parametrize("body", [
    "a = Mul (t, half) b = Mul (t, t) y = Add (a, b)",
    "a = Sub (t, half) b = Sub (half, t) y = Add (a, b)",
    "a = LeakyRelu <alpha = 0.1> (t) b = LeakyRelu <alpha = 0.2> (t) y = Add (a, b)",
    "a = Softmax <axis = 0> (t) b = Softmax <axis = 1> (t) y = Add (a, b)",
    "a = RandomNormalLike (t) b = RandomNormalLike (t) c = Sub (a, b) y = Mul (c, t)",
])  # fmt: skip
def test_what_is_alike_is_done_as_often_as_it_is_written(body):
    graph = net(body)
    assert operators(common_subexpressions(graph)) == operators(graph)


def test_what_a_subgraph_reads_keeps_its_name():
    graph = graph_of(
        """g (bool flag, float[2, 3] x) => (float[2, 3] y) {
            t = Identity (x)
            y = If (flag) <
                then_branch = left () => (float[2, 3] a) { a = Neg (t) },
                else_branch = right () => (float[2, 3] b) { b = Sin (t) }
            >
        }"""
    )
    assert operators(common_subexpressions(graph)) == operators(graph)
