"""Loops and choices that stay ones, in inference, in gradients of jax's and in those of ours."""

import numpy as np
import pytest

from tests.frontend.jax.case import check, jax, jnp, traced
from tightship import Sgd, train

lax = jax.lax


def rows(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32) * 0.5


W = rows(4, 4, seed=1)


def recurrent(w, x, reverse=False):
    def iteration(state, row):
        state = jnp.tanh(state @ w + row)
        return state, (state.sum(), row * 2)

    return lax.scan(iteration, jnp.zeros(4), x, reverse=reverse)


def repeated(x, count=100):
    return lax.fori_loop(0, count, lambda i, y: jnp.sin(y @ W) + i, x)


def grown(x):
    return lax.while_loop(lambda y: y[0].sum() < 90, lambda y: (y[0] * y[1] + 1, y[1]), (x, 1.5))[0]


def switched(index, x):
    one = x * 3
    return lax.switch(
        index, [lambda y: y @ W, jnp.sin, lambda y: y + one, lambda _: jnp.ones(4), jnp.exp], x
    )


CASES = {
    "scan": (lambda x: recurrent(W, x), (rows(100, 4),)),
    "reversed": (lambda x: recurrent(W, x, reverse=True), (rows(100, 4),)),
    "fori": (repeated, (rows(4),)),
    "nested": (lambda x: lax.map(lambda y: repeated(y, 70), x), (rows(70, 4),)),
    "while": (grown, (jnp.abs(rows(4)),)),
    "chosen": (lambda k, x: lax.cond(k, jnp.sin, lambda y: y @ W, x), (jnp.asarray(True), rows(4))),
    "passed": (lambda k, x: lax.cond(k, lambda y: (y, y), lambda y: (x * 2, y), x),
               (jnp.asarray(False), rows(4))),
    "results": (lambda x: (lax.cond(x.sum() > 0, lambda: x, lambda: -x), x + 1), (rows(4),)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_loops_and_choices_give_what_jax_gives(case):
    function, arguments = CASES[case]
    check(function, *arguments)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3, 4, 9])
def test_one_of_many_branches(index):
    check(switched, jnp.asarray(index), rows(4))


def loss_of(w, x, k):
    last, (sums, _) = recurrent(w, x)
    return lax.cond(k > 0, lambda y: (y**2).sum(), lambda y: (y @ w).sum(), last) + sums.mean()


@pytest.mark.parametrize("k", [1.0, -1.0])
def test_gradients_of_jax(k):
    check(jax.value_and_grad(loss_of, (0, 1)), W, rows(100, 4), jnp.asarray(k), tolerance=1e-4)


@pytest.mark.parametrize("count", [20, 600])
def test_steps_of_training_are_those_of_jax(count):
    x = rows(count, 4)
    held = np.asarray(W)

    def loss(x, k):
        return loss_of(jnp.asarray(held), x, k)

    step = jax.jit(jax.value_and_grad(loss_of))
    w = jnp.asarray(held)
    program = traced(loss, x, jnp.asarray(1.0))
    with train(program, "result", Sgd(0.02), weights=["captured"]) as trainer:
        for iteration in range(6):
            k = jnp.asarray(1.0 if iteration % 2 else -1.0)
            wanted, slope = step(w, x, k)
            found = trainer.step({"x": np.asarray(x), "k": np.asarray(k)})
            np.testing.assert_allclose(found, wanted, rtol=1e-4)
            w = w - 0.02 * slope
        (weights,) = trainer.weights().values()
    np.testing.assert_allclose(weights, w, rtol=1e-3, atol=1e-5)
