"""Gradients of whole models, against torch's autograd."""

import numpy as np
import pytest

from tests.engine.graphs import run
from tests.zoo.catalogue import SMALL
from tests.zoo.inception_bn import inception_bn
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import (
    backward,
    parameters,
    with_batch_statistics,
    with_squared_error,
)

torch = pytest.importorskip("torch", reason="the oracle of whole models is torch's autograd")

MODELS = (
    "bert", "bert_decomposed", "efficientnet_b0", "gpt2", "gpt2_decomposed", "inception_bn",
    "mobilenet_v2", "resnet50_folded", "unet", "vit", "vit_decomposed",
    "whisper_decoder", "whisper_encoder", "yolo",
)  # fmt: skip


def with_loss(name):
    """A model in training form that ends in a loss of each output, and its inputs."""
    case = inception_bn(2, 96, 4) if name == "inception_bn" else SMALL[name](2)
    graph = with_batch_statistics(read_bytes(case.model))
    feeds = dict(case.feeds)
    random = np.random.default_rng(3)
    for output in [name for name in graph.outputs if graph.value(name).dtype.value == "float32"]:
        shape = graph.value(output).static_shape
        feeds[f"{output}.target"] = random.standard_normal(shape).astype(np.float32)
        graph = with_squared_error(graph, output, f"{output}.target")
    return graph, feeds


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_of_a_model_has_torchs_gradient(name):
    from tests.graph.backward.torch_oracle import gradients

    graph, feeds = with_loss(name)
    wrt = parameters(graph)
    losses = [output for output in graph.outputs if output.endswith(".loss")]
    made = backward(graph, losses, wrt)
    results = run(made, inputs=feeds)
    wanted = gradients(graph, feeds, losses, wrt)
    assert len(wrt) > 10
    noise = 1e-6 * max(np.abs(each).max() for each in wanted)
    names = made.outputs[len(graph.outputs) :]
    for weight, gradient, expected in zip(wrt, names, wanted, strict=True):
        margin = 3e-4 * np.abs(expected).max() + noise
        np.testing.assert_allclose(results[gradient], expected, 0, margin, err_msg=weight)
