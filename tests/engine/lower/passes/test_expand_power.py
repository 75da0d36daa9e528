import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tightship.engine.lower.passes.expand_power import expand_power


def net(exponent, shape="2, 3", dtype="float"):
    return graph_of(
        f"g ({dtype}[{shape}] x) => ({dtype}[{shape}] y) {{ h = Tanh (x) y = Pow (h, e) }}",
        e=exponent,
    )


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("power", [2, 3, 4])
def test_a_small_whole_power_becomes_products(power, shape):
    graph = net(np.full(shape, power, np.float32))
    expanded = expand_power(graph)
    assert operators(expanded) == ["Tanh"] + ["Mul"] * (power - 1)
    assert_close(run(expanded), expected(graph))


def test_negative_bases_keep_their_sign():
    graph = graph_of("g (float[3] x) => (float[3] y) { y = Pow (x, e) }", e=np.array(3, np.int64))
    x = np.array([-2, -0.5, 3], np.float32)
    np.testing.assert_array_equal(run(expand_power(graph), (), {"x": x})["y"], x**3)


@pytest.mark.parametrize("power", [1, 0, -2, 0.5, 2.5, 5, np.nan, np.inf])
def test_other_powers_stay(power):
    graph = net(np.array(power, np.float32))
    assert operators(expand_power(graph)) == ["Tanh", "Pow"]


def test_a_power_for_each_element_or_a_wider_one_stays():
    for exponent in (np.full((2, 3), 2, np.float32), np.full((3,), 2, np.float32)):
        assert operators(expand_power(net(exponent))) == ["Tanh", "Pow"]
    wider = graph_of(
        "g (float[3] x) => (float[1, 3] y) { y = Pow (x, e) }", e=np.full((1, 1), 2, np.float32)
    )
    assert operators(expand_power(wider)) == ["Pow"]


def test_a_power_of_integers_stays():
    graph = graph_of("g (int32[3] x) => (int32[3] y) { y = Pow (x, e) }", e=np.array(2, np.int32))
    assert operators(expand_power(graph)) == ["Pow"]
