"""Layers of a network that are alike."""

import numpy as np

from tests.engine.graphs import graph_of
from tests.models import filled
from tests.zoo.open_lengths import text
from tightship.engine.lower.selection import rewritten
from tightship.engine.lower.steps.alike_layers import alike_layers
from tightship.engine.template import template_of
from tightship.frontend.onnx import open_bytes

LAYER = "a{n} = MatMul ({x}, w{n})  b{n} = {op} (a{n})  c{n} = Add (b{n}, {x})\n"
WEIGHTS = {f"w{n}": filled(4, 4) for n in range(1, 6)}


def chain(*operators, head="", tail="z = Sigmoid ({x})"):
    """One layer after another, each with an activation of its own."""
    text, x = "", "x"
    for n, operator in enumerate(operators, 1):
        text += LAYER.format(n=n, x=x, op=operator)
        x = f"c{n}"
    return f"chain (float[2, 4] x) => (float[2, 4] z) {{ {head} {text} {tail.format(x=x)} }}"


def found(model, **weights):
    """First node, nodes and number of the layers that are alike."""
    graph = graph_of(model, **{n: w for n, w in WEIGHTS.items() if n in model}, **weights)
    return [(repeat.start, repeat.period, len(repeat.values)) for repeat in alike_layers(graph)]


def test_layers_that_differ_in_their_weights_are_alike_but_for_the_last():
    assert found(chain("Tanh", "Tanh", "Tanh", "Tanh")) == [(0, 3, 3)]


def test_values_at_one_place_play_one_part():
    graph = graph_of(chain("Tanh", "Tanh", "Tanh", "Tanh"), **{n: WEIGHTS[n] for n in
                     ("w1", "w2", "w3", "w4")})  # fmt: skip
    (repeat,) = alike_layers(graph)
    assert list(zip(*repeat.values, strict=True)) == [
        ("x", "c1", "c2"),
        ("w1", "w2", "w3"),
        ("a1", "a2", "a3"),
        ("b1", "b2", "b3"),
        ("c1", "c2", "c3"),
    ]
    assert [repeat.values[0][place] for place in repeat.entering] == ["x"]
    assert [repeat.values[0][place] for place in repeat.constants] == ["w1"]


def test_two_layers_are_too_few():
    assert found(chain("Tanh", "Tanh")) == []


def test_another_operator_ends_what_is_alike():
    assert found(chain("Tanh", "Tanh", "Tanh", "Sigmoid", "Tanh")) == [(0, 3, 2)]


def test_a_weight_of_another_shape_is_another_layer():
    model = chain("Tanh", "Tanh", "Tanh").replace("w2)", "v)")
    model = model.replace("b2 =", "d2 = Identity (a2) b2 =")
    assert found(model, v=filled(4, 4)) == []


def test_scalars_that_differ_are_looked_at():
    parts = " ".join(f"c{n} = Mul ({x}, s{n})" for n, x in enumerate(("x", "c1", "c2", "c3"), 1))
    model = f"scaled (float[2, 4] x) => (float[2, 4] z) {{ {parts} z = Tanh (c4) }}"
    equal = {f"s{n}": np.float32(2) for n in (1, 2, 3, 4)}
    assert found(model, **equal) == [(0, 1, 3)]
    assert found(model, **(equal | {"s3": np.float32(3)})) == []


def test_a_layer_whose_value_is_an_output_is_another():
    model = chain("Tanh", "Tanh", "Tanh", "Tanh", "Tanh")
    assert found(model) == [(0, 3, 4)]
    model = model.replace("(float[2, 4] z)", "(float[2, 4] z, float[2, 4] b3)")
    assert found(model) == []


def test_a_layer_whose_value_is_read_far_behind_is_another():
    model = chain("Tanh", "Tanh", "Tanh", "Tanh", "Tanh", tail="z = Add ({x}, b2)")
    assert found(model) == [(6, 3, 2)]


def test_one_length_in_all_layers_is_one_expression():
    opened = open_bytes(text(layers=6))
    template = template_of(opened.graph({"ids": (1, 25)}), opened.declared, rewritten)
    (repeat,) = template.repeats
    assert len(repeat.values) == 5
    assert len(repeat.entering) == 1


def test_layers_that_read_the_last_but_one_are_not_compared():
    parts = "\n".join(f"c{n} = Mul (c{n - 1}, c{n - 3})" for n in range(3, 9))
    head = "c0 = Tanh (x)  c1 = Sigmoid (x)  c2 = Erf (x)"
    assert found(f"far (float[2, 4] x) => (float[2, 4] z) {{ {head} {parts} z = Abs (c8) }}") == []
