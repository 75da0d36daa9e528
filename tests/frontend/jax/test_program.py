"""The entry: names, constants, and what plans, loads and prepares."""

import numpy as np
import pytest

import tightship
from tests.frontend.jax.case import check, jax, jnp, traced
from tightship.errors import GraphError, InputError
from tightship.frontend.jax import read


def array(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


TREE = {"layers": [{"w": array(4, 3), "b": array(3)}], "scale": (array(3),)}


def network(params, x):
    layer = params["layers"][0]
    y = jnp.tanh(x @ layer["w"] + layer["b"])
    return {"y": y * params["scale"][0], "norm": [jnp.square(y).sum()]}


def test_inputs_and_outputs_have_their_places_in_the_trees():
    graph = check(network, TREE, array(2, 4))
    assert graph.inputs == ("params.layers.0.b", "params.layers.0.w", "params.scale.0", "x")
    assert graph.outputs == ("result.norm.0", "result.y")


def test_gradients_have_the_places_of_what_they_are_of():
    graph = check(jax.value_and_grad(lambda p, x: network(p, x)["y"].sum()), TREE, array(2, 4))
    assert graph.outputs == ("result.0", "result.1.layers.0.b", "result.1.layers.0.w",
                             "result.1.scale.0")  # fmt: skip


def test_captured_arrays_are_where_jax_has_them():
    weights = jnp.asarray(array(64, 32))
    graph = check(lambda x: x @ weights, array(2, 64))
    (held,) = [each for each in graph.constants.values() if each.shape == (64, 32)]
    assert held.array().ctypes.data == np.asarray(weights).ctypes.data


def test_an_input_given_back_is_an_output_of_its_own():
    graph = check(lambda x: (x, x, x + 0), array(3))
    assert len(set(graph.outputs) | set(graph.inputs)) == 4


def test_what_is_repeated_is_not_stored():
    graph = check(lambda x, b: jnp.zeros((4, 6)) + x * b + 2.0, array(4, 6), array(6))
    assert [node.operator for node in graph.nodes if node.operator in ("Expand", "Pad")] == []
    assert all(each.size_bytes <= 4 * 24 for each in graph.values.values())


def test_a_traced_function_is_planned_loaded_and_prepared(tmp_path):
    x = array(2, 4)
    function = traced(lambda x: network(TREE, x), x)
    plan = tightship.plan(function)
    assert plan.is_exact
    with tightship.load(function, max_memory="64MiB") as model:
        direct = model.run({"x": x})
    tightship.prepare(function, tmp_path / "model.tship")
    with tightship.load(tmp_path / "model.tship") as model:
        prepared = model.run({"x": x})
    for name, one in direct.items():
        np.testing.assert_array_equal(prepared[name], one)
    np.testing.assert_allclose(direct["result.y"], network(TREE, x)["y"], rtol=1e-5)


def test_shapes_can_only_repeat_those_of_the_trace():
    function = traced(lambda x: x + 1, array(2, 4))
    assert tightship.plan(function, shapes={"x": (2, 4)}).is_exact
    with pytest.raises(InputError, match="was traced with the inputs `x`"):
        tightship.plan(function, shapes={"x": (3, 4)})


def test_a_function_has_no_file_to_share():
    with pytest.raises(InputError, match=r"leave `share` out"):
        tightship.load(traced(lambda x: x + 1, array(2, 4)), share=True)


def test_a_key_of_random_numbers_is_refused_as_an_input():
    with pytest.raises(GraphError, match=r"`key` is an array of `key<fry>`"):
        read(traced(lambda key, x: (key, x + 1), jax.random.key(0), array(3)))
