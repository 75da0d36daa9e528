"""Models whose values are called as a step of training calls what it adds."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import load_from_string

from tests.training.nets import floats, labels, net
from tightship import Adam, InputError, Sgd, train
from tightship.cost.training import updating_graph
from tightship.frontend.onnx import read_bytes

NAMES = {
    "x": "step",
    "w1": "w", "b1": "w.mean", "scale1": "w.next", "w2": "rate", "b2": "w.rate",
    "mean1": "w.gathered", "variance1": "w.total",
    "h": "gradient_norm", "n": "y.square", "r": "dropout", "d": "y.square.mean",
    "s": "y.loss", "t": "w.squares", "u": "gradient_norm.scale", "v": "w.rate.factor",
}  # fmt: skip
"""Further names of each value of `plain`."""
OPTIMIZERS = [
    Sgd(0.1, momentum=0.9),
    Adam(0.01, clip_norm=1.0, rate_factors={"w1": 0.5}),
]


def plain():
    """Layers with a batch normalization and a dropout between them."""
    return net(
        """plain (float[8,10] x) => (float[8,4] y) {
            h = Gemm (x, w1, b1)
            n = BatchNormalization (h, scale1, bias1, mean1, variance1)
            r = Relu (n)
            d = Dropout (r)
            s = Tanh (d)
            t = Add (s, r)
            u = Neg (t)
            v = Sigmoid (u)
            y = Gemm <transB = 1> (v, w2, b2)
        }""",
        "cross_entropy",
        {"x": floats(8, 10), "labels": labels(4, 8)},
        w1=(10, 16), b1=(16,), w2=(4, 16), b2=(4,),
        scale1=(16,), bias1=(16,), mean1=(16,), variance1=(16,),
    )  # fmt: skip


def renamed(model, names):
    """The model with its values called otherwise."""
    made = load_from_string(model)
    for node in made.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in (*made.graph.input, *made.graph.initializer):
        value.name = names.get(value.name, value.name)
    return made.SerializeToString()


def trained(model, optimizer, feeds, path, accumulate):
    """Losses, and weights by name, of four steps with a checkpoint between them."""
    losses, halves = [], []
    for half in range(2):
        with train(model, "cross_entropy", optimizer, seed=3, accumulate=accumulate) as trainer:
            assert trainer.input_names == tuple(feeds)
            if half:
                trainer.load_checkpoint(path)
            losses += [trainer.step(feeds) for _ in range(2)]
            trainer.save_checkpoint(path)
            halves.append(trainer.weights())
    return losses, halves[1]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=["momentum", "adam"])
def test_names_of_a_step_of_training_may_be_the_models(tmp_path, optimizer, accumulate):
    case = plain()
    factors = {NAMES[name]: factor for name, factor in optimizer.rate_factors.items()}
    other = replace(optimizer, rate_factors=factors)
    feeds = {NAMES.get(name, name): array for name, array in case.feeds.items()}
    losses, weights = trained(case.model, optimizer, case.feeds, tmp_path / "one", accumulate)
    model = renamed(case.model, NAMES)
    found, called = trained(model, other, feeds, tmp_path / "other", accumulate)
    assert found == losses
    assert len(called) == len(weights)
    for name, array in weights.items():
        assert called[NAMES.get(name, name)].tobytes() == array.tobytes()


def test_the_training_cost_of_such_a_model_is_reported():
    case = plain()
    first, second = (
        updating_graph(read_bytes(model), Adam())
        for model in (case.model, renamed(case.model, NAMES))
    )
    assert len(second.nodes) == len(first.nodes)
    assert len({*second.inputs, *second.constants}) == len({*first.inputs, *first.constants})


def test_a_refused_step_speaks_of_the_models_names():
    case = plain()
    with train(renamed(case.model, NAMES), case.loss, Adam()) as trainer:
        with pytest.raises(InputError, match="Input `step` is missing"):
            trainer.step({"labels": case.feeds["labels"]})
        wrong = {"step": np.zeros((8, 10)), "labels": case.feeds["labels"]}
        with pytest.raises(InputError, match="Input `step` has dtype float64; float32 is needed"):
            trainer.step(wrong)
