"""Primitives of jax against its own results, a group of each part of the table."""

import numpy as np
import pytest

from tests.frontend.jax.case import check, jax, jnp, traced
from tightship.errors import GraphError
from tightship.frontend.jax import read

lax = jax.lax


def matrix(seed=0, *shape):
    return np.random.default_rng(seed).standard_normal(shape or (4, 6)).astype(np.float32)


def whole():
    return np.random.default_rng(0).integers(-9, 9, (3, 5)).astype(np.int32)


X, Y, WHOLE = matrix(), matrix(1), whole()
PLACES = np.array([[0, 3], [2, 2]], np.int32)
TURN = np.array(2, np.int32)

PROGRAMS = {
    "arithmetic": (
        lambda x, y: (x + 1, 1 - x, x * y, x / 3, x // 0.5, x % 0.3, x**2, x**3, x**4, x**-1,
                      abs(x) ** y, 2**x, -x, jnp.maximum(x, y), jnp.minimum(x, 0.5), x.clip(-1, 1),
                      jnp.clip(x, y - 1, y), jnp.sign(x), jnp.floor(x), jnp.ceil(x), jnp.round(x)),
        (X, Y),
    ),
    "functions": (
        lambda x: (jnp.exp(x), jnp.log(abs(x)), jnp.log1p(abs(x)), jnp.expm1(x), jnp.tanh(x),
                   jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sqrt(abs(x)), lax.rsqrt(abs(x)),
                   lax.logistic(x), lax.erf(x), lax.erfc(x), jnp.exp2(x), jnp.arctan(x),
                   jnp.sinh(x), jnp.cosh(x), jnp.square(x)),
        (X,),
    ),
    "activations": (
        lambda x: (jax.nn.relu(x), jax.nn.gelu(x), jax.nn.gelu(x, approximate=False),
                   jax.nn.silu(x), jax.nn.elu(x), jax.nn.selu(x), jax.nn.softplus(x),
                   jax.nn.log_sigmoid(x), jax.nn.leaky_relu(x), jax.nn.relu6(x), jax.nn.mish(x),
                   jax.nn.hard_swish(x), jax.nn.softmax(x), jax.nn.log_softmax(x, 0),
                   jax.nn.logsumexp(x, 1), jax.nn.standardize(x),
                   jax.nn.one_hot(x[0].astype(int), 3)),
        (X,),
    ),
    "integers": (
        lambda i: (i // 2, i % 3, i + 1, i / 2, i * i, i & 1, i | 2, ~i, i ^ 3, lax.rem(i, 3),
                   lax.div(i, 4), i.astype(jnp.float32), i > 1, i != 2, abs(i), i.sum(), i.max(1)),
        (WHOLE,),
    ),
    "conditions": (
        lambda x, y: (x > 0, x == y, (x != 0) & (x < 1), (x > 0) | (x < -1), ~(x > 0), x >= y,
                      (x > 0) ^ (y > 0), jnp.where(x > 0, x, 2), jnp.where(x > y, x, y[:, :1]),
                      jnp.isfinite(x / (y > 0)), jnp.isnan(x), jnp.maximum(x > 0, y > 0)),
        (X, Y),
    ),
    "reductions": (
        lambda x: (x.sum(), x.sum(1), x.mean(0, keepdims=True), x.max(1), x.min(), x.prod(1),
                   x.argmax(), x.argmax(1), x.argmin(0), x.var(1), x.std(0), x.cumsum(1),
                   lax.cumsum(x, 0, reverse=True), (x > 0).any(), (x > 0).all(1),
                   jnp.linalg.norm(x)),
        (X,),
    ),
    "orders": (
        lambda x: (jnp.sort(x, 1), jnp.sort(x, 0, descending=True), jnp.argsort(x, 1),
                   *lax.top_k(x, 2), jnp.median(x, 1)),
        (X,),
    ),
    "views": (
        lambda x: (x.reshape(3, -1), x.T, x[0], x[:, 1], x[:, ::2], x[:, -1:], x[..., None],
                   x[::-1], jnp.broadcast_to(x, (2, 4, 6)), jnp.tile(x, (2, 1)), x.squeeze(),
                   jnp.roll(x, 1, 1), jnp.moveaxis(x[None], 0, 1), *jnp.split(x, 3, 1),
                   lax.reshape(x, (6, 4), (1, 0)), jnp.flip(x), x.ravel()[3:], x[1:3, 2:4].T[0]),
        (X,),
    ),
    "joined and padded": (
        lambda x, y: (jnp.concatenate([x, y], 1), jnp.stack([x, y]), jnp.pad(x, ((0, 1), (2, 0))),
                      lax.pad(x, 3.0, ((1, 0, 2), (-1, -1, 0))), jnp.repeat(x, 2, 1),
                      lax.pad(x, 0.0, ((0, -1, 1), (2, -1, 1))), jnp.eye(4) @ x,
                      x + jnp.arange(6), jnp.tril(x), jnp.triu(x, 1), jnp.linspace(0, 1, 6) * y),
        (X, Y),
    ),
    "read positions": (
        lambda x, i, n: (x[i], x[:, i], x[i, i + 1], x[n], x[n, 1], x[:, n], x[1:][:, i], x[i, n],
                         jnp.take(x, i, axis=1), lax.dynamic_slice(x, (n, n), (2, 3)),
                         lax.dynamic_slice(x, (n, 4), (3, 3)), lax.dynamic_index_in_dim(x, n, 1),
                         jnp.take_along_axis(x, i[:, :1], 0),
                         jnp.take_along_axis(x, x.argmax(1)[:, None], 1),
                         x[jnp.array([3, 0])], jax.vmap(lambda row, j: row[j])(x[:2], i)),
        (X, PLACES, TURN),
    ),
    "written positions": (
        lambda x, y, i, n: (x.at[2].set(7), x.at[:, 1].set(y[:, 0]), x.at[1:3].set(y[:2]),
                            x.at[1:3, 2:4].set(0), x.at[1:3, 2:4].add(y[:2, :2]), x.at[-1].add(1),
                            x.at[i].set(3), x.at[i].add(y[i]), x.at[:, i].add(1), x.at[n].set(0),
                            x.at[i, i + 1].add(2), x.at[i[:1], n].set(5), x.at[::2].set(1),
                            x.at[i[0]].multiply(3), x.at[i[0]].max(y[:2]), x.at[i[0]].min(y[:2]),
                            x.at[:, i[0]].set(y[:, :2]), x.at[n, n + 1].set(4),
                            lax.dynamic_update_slice(x, y[:2], (n, 0)),
                            lax.dynamic_update_slice(x, y[:, :3], (0, n)),
                            lax.dynamic_update_slice(x, y[:2, :3], (1, 2))),
        (X, Y, PLACES, TURN),
    ),
    "products": (
        lambda x, y: (x @ y.T, x.T @ y, x @ y[0], jnp.outer(x[0], y[0]), jnp.vdot(x, y),
                      jnp.einsum("ij,kj->ik", x, y), jnp.einsum("ij,ij->i", x, y),
                      jnp.tensordot(x, y, 2), jnp.einsum("ij,kl->kjil", x, y),
                      jnp.einsum("abc,cbd->bad", x.reshape(2, 3, 4), y.reshape(4, 3, 2)),
                      jnp.einsum("abc,abd->acd", x.reshape(2, 3, 4), y.reshape(2, 3, 4)),
                      jnp.einsum("abc,dbac->abd", x.reshape(2, 3, 4), y.reshape(1, 3, 2, 4))),
        (X, Y),
    ),
    "control": (
        lambda x: (lax.fori_loop(0, 3, lambda _, y: y * 2 + 1, x), lax.map(jnp.sin, x),
                   lax.cond(True, jnp.sin, jnp.cos, x), *lax.scan(
                       lambda c, row: (c + row, c * row), x[0], x)),
        (X,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_primitives_give_what_jax_gives(name):
    function, arguments = PROGRAMS[name]
    check(function, *arguments)


def volume(seed, *shape):
    return matrix(seed, *shape)


CONVOLUTIONS = {
    "of a line": ((2, 3, 9), (4, 3, 2), {"window_strides": (2,), "padding": ((1, 0),)}),
    "grouped": ((2, 4, 7, 6), (6, 2, 3, 2), {"padding": "SAME", "feature_group_count": 2}),
    "strided": ((2, 3, 9, 8), (4, 3, 3, 3), {"window_strides": (2, 3), "padding": "SAME"}),
    "grouped and strided": (
        (2, 4, 9, 8), (6, 2, 3, 3),
        {"window_strides": (3, 2), "padding": "SAME", "feature_group_count": 2},
    ),
    "by channel": ((2, 4, 6, 6), (4, 1, 3, 3), {"padding": "SAME", "feature_group_count": 4}),
    "spread": ((2, 3, 9, 8), (4, 3, 2, 3), {"padding": "VALID", "rhs_dilation": (2, 2)}),
    "cut": ((2, 3, 9, 8), (4, 3, 3, 3), {"padding": ((-1, 2), (0, -2))}),
    "with gaps": (
        (2, 3, 4, 5), (4, 3, 3, 3), {"padding": ((2, 1), (0, 3)), "lhs_dilation": (2, 3)},
    ),
    "with gaps and steps": (
        (2, 3, 4, 5), (4, 3, 3, 3),
        {"padding": ((2, 1), (0, 3)), "lhs_dilation": (2, 3), "window_strides": (2, 2)},
    ),
    "of a body": ((1, 2, 5, 4, 6), (3, 2, 2, 3, 2), {"padding": "VALID"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_and_its_gradients_are_those_of_jax(name):
    image, filters, how = CONVOLUTIONS[name]
    how = {"window_strides": (1,) * (len(image) - 2), **how}
    target = volume(3, *jax.eval_shape(
        lambda x, w: lax.conv_general_dilated(x, w, **how), volume(1, *image), volume(2, *filters)
    ).shape)  # fmt: skip

    def loss(x, w):
        return (lax.conv_general_dilated(x, w, **how) * target).sum()

    check(jax.value_and_grad(loss, (0, 1)), volume(1, *image), volume(2, *filters))


GRADIENTS = {
    "views": lambda x: (x[1:3, ::2] * x.T[:3, 2:4].T).sum() + (x[::-1] * x.reshape(6, 4).T).sum(),
    "written": lambda x: (x.at[1:3].set(x[:2] ** 2) * x.at[:, 2].add(3)).sum(),
    "picked": lambda x: (x[PLACES] * x[:, PLACES].transpose(1, 0, 2)[:, :2, :, None]).sum(),
    "ordered": lambda x: (jnp.sort(x, 1) * jnp.arange(6)).sum() + x.max() + jnp.cumsum(x, 1).prod(),
    "windows": lambda x: (
        lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), "SAME") ** 2
    ).sum() + lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), "VALID").sum(),
    "windows of lines": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 3), (1, 1), ((0, 0), (1, 1))
    ).prod(),
    "scanned": lambda x: lax.scan(lambda c, row: (jnp.tanh(c * row), c.sum()), x[0], x)[1].sum(),
    "custom": lambda x: jax.nn.relu(x).sum() + jnp.logaddexp(x, 1.0).sum() + jnp.linalg.norm(x),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_jax(name):
    check(jax.value_and_grad(GRADIENTS[name]), X, tolerance=1e-4)


REFUSED = {
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "cummax": lambda x: lax.cummax(x, 0),
    "svd": lambda x: jnp.linalg.svd(x)[1],
}
WHY = {
    "random": "draw random numbers outside",
    "cummax": "`cummax` .*has no translation",
    "svd": "`svd` .*has no translation",
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_without_translation_is_reported_with_its_line(name):
    with pytest.raises(GraphError, match=WHY[name]) as error:
        read(traced(REFUSED[name], X))
    assert "test_translations.py:" in str(error.value)
