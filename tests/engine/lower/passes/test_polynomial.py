import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.graphs import graph_of
from tightship.engine.lower.passes.polynomial import Algebra, agrees


def algebra(body, outputs="y"):
    """Build a graph of `t` and `u`, each read twice, and constants."""
    declared = ", ".join(f"float[3] {name}" for name in (*outputs.split(), "p", "q"))
    return Algebra.of(
        graph_of(
            f"g (float[3] x) => ({declared}) {{ t = Sin (x) u = Cos (x) p = Exp (t) q = Exp (u) "
            f"{body} }}",
            two=np.array(2, np.float32), half=np.array([0.5], np.float32),
            zero=np.array(0, np.float32), many=np.array([1, 2, 3], np.float32),
        )
    )  # fmt: skip


READINGS = {
    "y = Add (t, u)": {("t",): 1, ("u",): 1},
    "a = Mul (two, t) y = Sub (a, u)": {("t",): 2, ("u",): -1},
    "a = Add (t, two) b = Sub (u, two) y = Mul (a, b)":
        {("t", "u"): 1, ("t",): -2, ("u",): 2, (): -4},
    "a = Neg (t) b = Identity (a) y = Pow (b, two)": {("t", "t"): 1},
    "a = Div (t, two) y = Div (a, u)": {("1/u", "t"): 0.5},
    "a = Reciprocal (t) y = Mul (u, a)": {("1/t", "u"): 1},
    "a = Mul (t, many) y = Add (a, half)": {("many", "t"): 1, (): 0.5},
    "a = Div (t, zero) y = Mul (a, two)": {("a",): 2},
    "a = Sub (t, t) y = Add (a, u)": {("a",): 1, ("u",): 1},
    "a = Pow (t, half) y = Mul (a, two)": {("a",): 2},
    "a = Max (t, u) y = Mul (a, a)": {("a", "a"): 1},
}  # fmt: skip


@pytest.mark.parametrize("body", READINGS)
def test_a_value_is_read_as_a_polynomial(body):
    made = algebra(body)
    assert dict(made.made(made.makers["y"])) == READINGS[body]
    assert dict(made.read("y")) == READINGS[body]


def test_what_several_read_is_not_looked_into_unless_atoms_are_given():
    made = algebra("a = Add (t, u) b = Mul (a, two) c = Mul (a, half) y = Add (b, c)")
    assert dict(made.read("y")) == {("a",): 2.5}
    assert dict(made.read("y", ("t", "u"))) == {("t",): 2.5, ("u",): 2.5}
    assert dict(made.read("a")) == {("a",): 1}


def test_what_grows_too_large_is_an_atom():
    powers = "a = Mul (t, t) b = Mul (a, u) c = Mul (b, u) d = Mul (c, t) y = Mul (d, two)"
    assert dict(algebra(powers).read("y")) == {("d",): 2}
    deep = " ".join(f"n{i + 1} = Neg (n{i})" for i in range(30))
    found = algebra(f"n0 = Neg (t) {deep} y = Neg (n30)").read("y")
    assert len(found) == 1
    assert ("t",) not in found


@given(st.floats(-100, 100), st.floats(0.0, 1e-5))
def test_polynomials_agree_up_to_rounding_and_no_further(number, error):
    wanted = {("x",): number, (): 2.0}
    assert agrees({("x",): number * (1 + error), (): 2.0}, wanted)
    assert not agrees({("x",): number, (): 2.001}, wanted)
    assert not agrees({("x",): number}, wanted)
