"""Networks as they are at inference, and with their gradients, against jax."""

from functools import partial

import numpy as np
import pytest

from tests.frontend.jax.case import check, jax, jnp, run, traced
from tightship.frontend.jax import read
from tightship.graph.backward import Sgd, with_updates


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(seed, high, *shape):
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)


def perceptron(p, x):
    for layer in p["layers"]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x


PERCEPTRON = (
    {"layers": [{"w": normal(1, 12, 20), "b": normal(2, 20)},
                {"w": normal(3, 20, 7), "b": normal(4, 7)}]},
    normal(5, 6, 12),
)  # fmt: skip


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]


NORM = ({"scale": normal(1, 16), "bias": normal(2, 16)}, normal(3, 2, 5, 16))


def attention(p, x, heads=4):
    batch, length, width = x.shape
    y = layer_norm(p["norm"], x)
    q, k, v = jnp.split((y @ p["qkv"]).reshape(batch, length, 3, heads, width // heads), 3, axis=2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q[:, :, 0], k[:, :, 0]) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v[:, :, 0])
    x = x + mixed.reshape(batch, length, width) @ p["out"]
    return x + jax.nn.silu(layer_norm(p["norm"], x) @ p["up"]) @ p["down"]


BLOCK = {
    "norm": NORM[0], "qkv": normal(4, 16, 48), "out": normal(5, 16, 16),
    "up": normal(6, 16, 40), "down": normal(7, 40, 16),
}  # fmt: skip


def language(p, ids):
    x = p["tokens"][ids] + p["places"][: ids.shape[1]]
    for block in p["blocks"]:
        x = jax.checkpoint(attention)(block, x)
    return x @ p["tokens"].T


LANGUAGE = (
    {"tokens": normal(1, 11, 16), "places": normal(2, 8, 16), "blocks": [BLOCK, BLOCK]},
    whole(3, 11, 2, 5),
)


def convolutional(p, x, order="NCHW"):
    numbers = (order, {"NCHW": "OIHW", "NHWC": "HWIO"}[order], order)
    conv = partial(jax.lax.conv_general_dilated, dimension_numbers=numbers)
    window = (1, 1, 2, 2) if order == "NCHW" else (1, 2, 2, 1)
    x = jax.nn.relu(conv(x, p["first"], (2, 2), "SAME"))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
    x = conv(x, p["grouped"], (1, 1), "SAME", feature_group_count=2)
    x = conv(jax.nn.leaky_relu(x), p["wide"], (1, 1), ((2, 1), (1, 2)), rhs_dilation=(2, 2))
    x = jax.lax.reduce_window(x, 0.0, jax.lax.add, window, window, "SAME") / 4
    return x.reshape(x.shape[0], -1) @ p["head"]


def images(order):
    to = (lambda w: w) if order == "NCHW" else (lambda w: w.transpose(2, 3, 1, 0))
    filters = {"first": (6, 3, 3, 3), "grouped": (8, 3, 3, 3), "wide": (4, 8, 2, 2)}
    p = {name: to(normal(i, *shape)) for i, (name, shape) in enumerate(filters.items())}
    x = normal(9, 2, 3, 17, 16)
    return {**p, "head": normal(8, 36, 5)}, x if order == "NCHW" else x.transpose(0, 2, 3, 1)


def recurrent(p, x):
    def step(h, row):
        h = jnp.tanh(row @ p["w"] + h @ p["r"])
        return h, h

    last, rows = jax.lax.scan(step, jnp.zeros((x.shape[1], 6)), x, reverse=True)
    return last + rows.mean(0)


def upsampled(p, x):
    y = jax.lax.conv_transpose(
        x, p["up"], (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    return jnp.repeat(y, 2, axis=2)


PROGRAMS = {
    "perceptron": (perceptron, PERCEPTRON),
    "layer norm": (layer_norm, NORM),
    "attention": (attention, (BLOCK, normal(8, 2, 5, 16))),
    "language": (language, LANGUAGE),
    "convolutional": (convolutional, images("NCHW")),
    "channels last": (partial(convolutional, order="NHWC"), images("NHWC")),
    "recurrent": (recurrent, ({"w": normal(1, 4, 6), "r": normal(2, 6, 6)}, normal(3, 5, 2, 4))),
    "upsampled": (upsampled, ({"up": normal(1, 5, 3, 3, 3)}, normal(2, 2, 3, 4, 6))),
}


def cross_entropy(function, labels, p, x):
    scores = function(p, x)
    logs = jax.nn.log_softmax(scores.reshape(scores.shape[0], -1))
    return -jnp.take_along_axis(logs, labels[:, None], axis=-1).mean()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_network_gives_what_jax_gives(name):
    function, arguments = PROGRAMS[name]
    check(function, *arguments)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loss_has_the_gradients_of_jax(name):
    function, arguments = PROGRAMS[name]
    labels = whole(1, 5, jax.eval_shape(function, *arguments).shape[0])
    loss = partial(cross_entropy, function, labels)
    check(jax.value_and_grad(loss), *arguments, tolerance=1e-4)


def test_gradients_of_data_are_those_of_jax():
    function, arguments = PROGRAMS["convolutional"]
    loss = partial(cross_entropy, function, whole(1, 5, 2))
    check(jax.grad(loss, argnums=(0, 1)), *arguments, tolerance=1e-4)


def test_convolutions_of_a_gradient_are_those_of_training():
    function, arguments = PROGRAMS["convolutional"]
    loss = partial(cross_entropy, function, whole(1, 5, 2))
    graph = check(jax.value_and_grad(loss), *arguments, tolerance=1e-4)
    operators = [node.operator for node in graph.nodes]
    assert operators.count("ConvGradWeights") == 3
    assert operators.count("ConvTranspose") == 0
    assert operators.count("MaxPoolGrad") == 1


def test_updates_in_the_graph_are_those_of_jax():
    function, arguments = PROGRAMS["perceptron"]
    loss = partial(cross_entropy, function, whole(1, 5, 6))
    graph = read(traced(jax.value_and_grad(loss), *arguments))
    weights = graph.inputs[:-1]
    updated = with_updates(graph, weights, graph.outputs[1:], Sgd(0.5))
    _, *found = run(updated, arguments)
    gradients = jax.grad(loss)(*arguments)
    wanted = jax.tree.map(lambda w, g: w - 0.5 * g, arguments[0], gradients)
    for one, other in zip(found, jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)
