"""Lookups of passes over a graph's readers and writers."""

import numpy as np

from tests.engine.graphs import graph_of
from tightship.engine.lower.passes.walk import Walk


def test_values_have_writers_and_readers():
    walk = Walk.over(
        graph_of(
            "g (float[2] x) => (float[2] y) { a = Relu (x) b = Neg (a) c = Abs (a) y = Add (b, c) }"
        )
    )
    add = walk.makers["y"]
    assert add.operator == "Add"
    assert walk.sole_reader("b") is walk.sole_reader("c") is walk.readers["b"]
    assert walk.counts["a"] == 2
    assert walk.sole_reader("a") is None
    assert walk.sole_reader("y") is None
    assert "x" not in walk.makers


def test_a_node_is_of_integers_that_a_dequantization_reads():
    walk = Walk.over(
        graph_of(
            "g (uint8[2] x) => (float[2] y)"
            "{ d = DequantizeLinear (x, s) a = Relu (d) y = Neg (a) }",
            s=np.float32(0.5),
        )
    )
    assert walk.is_of_integers(walk.makers["a"])
    assert not walk.is_of_integers(walk.makers["y"])
    assert not walk.is_of_integers(walk.makers["d"])
