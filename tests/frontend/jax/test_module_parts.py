"""Modules of jax in two parts: weights by their places, and a function of them."""

import numpy as np

from tests.frontend.jax.case import jax, jnp
from tightship.frontend.jax.module_parts import is_array, parts_of


@jax.tree_util.register_pytree_with_keys_class
class Affine:
    """A module that is a tree of jax: an array, a number and a function."""

    def __init__(self, weight, scale, function):
        self.weight, self.scale, self.function = weight, scale, function

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("weight"), self.weight), (key("function"), self.function)), self.scale

    @classmethod
    def tree_unflatten(cls, scale, children):
        weight, function = children
        return cls(weight, scale, function)

    def __call__(self, x):
        return self.function(x @ self.weight) * self.scale


def test_arrays_of_a_tree_are_weights_and_the_rest_stays():
    module = Affine(jnp.eye(3), 2.0, jnp.tanh)
    parts = parts_of(module)
    assert parts.name == "Affine"
    assert list(parts.weights) == list(parts.trained) == ["weight"]
    assert list(parts.signature.parameters) == ["x"]
    x = np.ones(3, np.float32)
    np.testing.assert_allclose(parts.call([3 * jnp.eye(3)], x), 2 * np.tanh(3 * x), rtol=1e-6)


def test_integers_are_not_trained():
    assert list(parts_of(Affine(np.eye(3, dtype=np.int32), 1.0, abs)).trained) == []


def test_a_function_has_no_weights():
    parts = parts_of(jnp.tanh)
    assert not parts.weights
    assert list(parts_of(lambda a, b: a + b).signature.parameters) == ["a", "b"]


def test_shapes_count_as_arrays():
    assert is_array(jax.ShapeDtypeStruct((2,), jnp.float32))
    assert is_array(np.ones(2))
    assert not is_array(2.0)
