"""Modules of flax and equinox, and functions: their plans, results and steps of training."""

import numpy as np
import pytest

import tightship
from tests.frontend.jax.case import jax, jnp
from tightship.errors import GraphError, InputError
from tightship.lengths import OpenLengths

KEY = jax.random.key(0)
IMAGE = np.random.default_rng(0).standard_normal((2, 8, 8, 3)).astype(np.float32)
LABELS = np.array([0, 3])
X = np.ones(8, np.float32)


def scaled(params, x):
    return jnp.tanh(x @ params["w"]) * params["b"]


def test_arguments_of_a_function_are_inputs_by_their_places():
    params = {"w": np.ones((8, 4), np.float32), "b": np.ones(4, np.float32)}
    x = np.ones((2, 8), np.float32)
    with tightship.load(scaled, (params, x)) as model:
        assert list(model.input_types) == ["params.b", "params.w", "x"]
        found = model(params["b"], params["w"], x)
    np.testing.assert_allclose(found, scaled(params, x), rtol=1e-6)
    assert tightship.plan(jax.jit(scaled), (params, x)).peak_bytes == (
        tightship.plan(scaled, {"params": params, "x": x}).peak_bytes
    )


def test_examples_may_be_shapes_alone():
    x = jax.ShapeDtypeStruct((4, 4), jnp.float32)
    assert tightship.plan(lambda x: x @ x, x).inputs == {"x": "4x4 float32"}


def mlp():
    equinox = pytest.importorskip("equinox", reason="`.ci/frontends` has equinox")
    return equinox.nn.MLP(8, 4, 16, 2, key=KEY)


def test_a_module_of_equinox_gives_its_results():
    module, x = mlp(), IMAGE.reshape(-1)[:8]
    with tightship.load(module, x) as model:
        np.testing.assert_allclose(model(x), module(x), rtol=1e-5, atol=1e-6)
        assert [each.name for each in model.plan.weights][:2] == [
            "layers.0.weight", "layers.0.bias",
        ]  # fmt: skip


def test_a_module_of_equinox_without_memory_has_the_same_plan():
    import equinox

    module, x = mlp(), IMAGE.reshape(-1)[:8]
    shapes = equinox.filter_eval_shape(equinox.nn.MLP, 8, 4, 16, 2, key=KEY)
    assert tightship.plan(shapes, x).peak_bytes == tightship.plan(module, x).peak_bytes
    with pytest.raises(InputError, match=r"`layers\.0\.weight` has a shape and no elements"):
        tightship.load(shapes, x)


def net():
    nnx = pytest.importorskip("flax.nnx", reason="`.ci/frontends` has flax")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.conv = nnx.Conv(3, 8, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.head = nnx.Linear(8, 4, rngs=rngs)

        def __call__(self, image):
            return self.head(jax.nn.relu(self.norm(self.conv(image))).mean((1, 2)))

    return Net


def nnx_module(make):
    from flax import nnx

    module = make(nnx.Rngs(0))
    module.eval()
    return module


def test_a_module_of_nnx_gives_its_results():
    module = nnx_module(net())
    with tightship.load(module, IMAGE) as model:
        np.testing.assert_allclose(model(IMAGE), module(IMAGE), rtol=1e-4, atol=1e-5)
        assert model.plan.model == "Net"


def test_a_module_of_nnx_that_changes_itself_is_refused():
    from flax import nnx

    with pytest.raises(GraphError, match=r"`Net` changes `norm\.mean`.*`module\.eval\(\)`"):
        tightship.plan(net()(nnx.Rngs(0)), IMAGE)


def test_a_step_of_a_module_of_nnx_trains_its_parameters():
    from flax import nnx

    make = net()
    module = nnx_module(make)
    definition, parameters, rest = nnx.split(module, nnx.Param, ...)

    def loss(parameters):
        scores = nnx.merge(definition, parameters, rest)(IMAGE)
        return -jax.nn.log_softmax(scores)[jnp.arange(2), LABELS].mean()

    optimizer = tightship.Sgd(0.1)
    with tightship.train(module, "cross_entropy", optimizer, example_inputs=IMAGE) as trainer:
        assert sorted(trainer.weights()) == sorted(
            ["conv.bias", "conv.kernel", "head.bias", "head.kernel", "norm.bias", "norm.scale"]
        )
        for _ in range(3):
            wanted, gradients = jax.value_and_grad(loss)(parameters)
            found = trainer.step({"image": IMAGE, "labels": LABELS})
            assert found == pytest.approx(float(wanted), rel=1e-4)
            parameters = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
        peak = trainer.peak_bytes
    shapes = nnx.eval_shape(lambda: make(nnx.Rngs(0)))
    shapes.eval()
    plan = tightship.plan(shapes, IMAGE, loss="cross_entropy", optimizer=optimizer)
    assert plan.peak_bytes == peak
    with pytest.raises(InputError, match="has a shape and no elements"):
        tightship.train(shapes, "cross_entropy", optimizer, example_inputs=IMAGE)


def test_keys_of_random_numbers_stay_in_the_module():
    nnx = pytest.importorskip("flax.nnx", reason="`.ci/frontends` has flax")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layer = nnx.Linear(8, 4, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.dropout(self.layer(x))

    module = nnx_module(Net)
    with tightship.load(module, X) as model:
        np.testing.assert_allclose(model(X), module(X), rtol=1e-5, atol=1e-6)


def linen_module():
    linen = pytest.importorskip("flax.linen", reason="`.ci/frontends` has flax")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, image):
            y = linen.BatchNorm(use_running_average=True)(linen.Conv(8, (3, 3))(image))
            return linen.Dense(4)(linen.relu(y).mean((1, 2)))

    return Net()


def test_a_module_of_linen_is_given_with_its_variables():
    module = linen_module()
    with pytest.raises(InputError, match=r"`module\.bind\(variables\)`"):
        tightship.plan(module, IMAGE)
    bound = module.bind(module.init(KEY, IMAGE))
    with tightship.load(bound, IMAGE) as model:
        np.testing.assert_allclose(model(IMAGE), bound(IMAGE), rtol=1e-4, atol=1e-5)
        peak = model.plan.peak_bytes
    shapes = jax.eval_shape(module.init, KEY, IMAGE)
    assert tightship.plan(module.bind(shapes), IMAGE).peak_bytes == peak


def test_a_function_as_loss_takes_its_labels_by_name():
    module = linen_module()
    bound = module.bind(module.init(KEY, IMAGE))

    def squared(output, wanted):
        return jnp.mean((output - wanted) ** 2)

    wanted = np.ones((2, 4), np.float32)
    with tightship.train(
        bound, squared, tightship.Sgd(0.1), example_inputs=IMAGE, example_labels=wanted
    ) as trainer:
        assert trainer.input_names == ("image", "wanted")
        assert all(name.startswith("params.") for name in trainer.weights())
        found = trainer.step({"image": IMAGE, "wanted": wanted})
    assert found == pytest.approx(float(squared(bound(IMAGE), wanted)), rel=1e-4)


@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, X, GraphError, "decides by data.*jax.lax.cond"),
        (lambda x: x @ jnp.ones((5, 2)), X, InputError, "with the inputs `x` 8 float32"),
        (lambda x: x, (X, X), InputError, r"do not fit `<lambda>\(x\)`"),
        (lambda x: jax.random.normal(KEY, x.shape) + x, X, GraphError, "key<fry>"),
    ],
)
def test_what_cannot_be_traced_is_named(model, given, error, message):
    with pytest.raises(error, match=message):
        tightship.plan(model, given)


def test_shapes_replace_those_of_the_examples():
    plan = tightship.plan(lambda x: x + 1, X, shapes={"x": (9,)})
    assert plan.inputs == {"x": "9 float32"}
    open_plan = tightship.plan(lambda x: x + 1, X, shapes={"x": ("n",), "n": 7})
    assert open_plan.inputs == {"x": "7 float32"}
    with pytest.raises(InputError, match="no input `y`; its inputs are: `x`"):
        tightship.plan(lambda x: x, X, shapes={"y": (9,)})


def test_open_lengths_are_traced_for_each():
    params = {"w": jnp.ones((8, 4)), "b": jnp.ones(4)}
    examples = (params, np.ones((2, 8), np.float32))
    found = OpenLengths.of(scaled, {"x": ("batch", 8)}, example_inputs=examples)
    assert dict(found.lengths) == {"batch": 2}
    for length, peak in found.peaks("batch", (1, 64)).peaks:
        given = (params, jax.ShapeDtypeStruct((length, 8), jnp.float32))
        assert tightship.plan(scaled, given).peak_bytes == peak
    largest = found.largest("batch", "80MiB")
    assert found.peak_bytes("batch", largest) <= 80 << 20 < found.peak_bytes("batch", largest + 1)
    assert OpenLengths.of(scaled, example_inputs=examples) is None
