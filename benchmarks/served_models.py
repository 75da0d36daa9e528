"""Models that `bench_serve` and `bench_http` serve, and what a request for one has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from benchmarks import models
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests import decoders

Array = NDArray[Any]

STACKS = {"wide": (2048, 12), "middle": (512, 8), "small": (64, 2)}
"""Width and number of square products: 192 MiB, 8 MiB and 32 KiB of weights."""
DECODER = decoders.Size(
    layers=12, heads=12, shared=12, length=64, vocabulary=8192, positions=1024
)  # 328 MiB of weights
PAST = 32
"""Rows of the decoder's caches before a request's token."""


@dataclass(frozen=True, slots=True)
class Served:
    """Model of an open batch.

    Attributes:
        model: The file.
        inputs: Inputs of a request by name, of one row each.
        batch_max: Largest batch.
        clients: Clients that ask at once.
        rounds: Rounds of a measurement, fewer where a run takes long.
    """

    model: bytes
    inputs: Mapping[str, Array]
    batch_max: int = 16
    clients: int = 16
    rounds: int = 5


def stack(width: int, count: int) -> onnx.ModelProto:
    """Return products of an open batch of rows with square weights, and Relu after each."""
    generator, nodes, weights, last = np.random.default_rng(0), [], [], "x"
    for number in range(count):
        values = generator.standard_normal((width, width), np.float32) / np.float32(width**0.5)
        weights.append(numpy_helper.from_array(values, f"w{number}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"p{number}"]))
        last = f"y{number}" if number < count - 1 else "y"
        nodes.append(helper.make_node("Relu", [f"p{number}"], [last]))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "stack", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def stacked(name: str) -> Served:
    """Return a stack of `STACKS`, and a row."""
    width, count = STACKS[name]
    row = np.random.default_rng(1).standard_normal((1, width), np.float32)
    return Served(stack(width, count).SerializeToString(), {"x": row})


def decoder() -> Served:
    """Return a decoder as TorchScript exports GPT-2: a token behind caches of `PAST` rows."""
    random, caches = np.random.default_rng(1), {}
    for layer in range(DECODER.layers):
        for each in ("key", "value"):
            shape = (1, DECODER.heads, PAST, DECODER.length)
            caches[f"past_key_values.{layer}.{each}"] = random.standard_normal(shape, np.float32)
    return Served(decoders.gpt2(DECODER), {"input_ids": np.array([[7]]), **caches})


def vgg19() -> Served:
    """Return VGG-19, whose file has a batch of 1, with an open batch, and an image."""
    with TemporaryDirectory() as folder:
        feeds = models.lightly("vgg19", 1, Path(folder) / "vgg19.onnx")
        model = onnx.load(Path(folder) / "vgg19.onnx")
    models.rebatch(model.graph, -1)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    return Served(model.SerializeToString(), feeds, batch_max=8, clients=8, rounds=2)


MODELS: Mapping[str, Callable[[], Served]] = {
    **{name: (lambda name=name: stacked(name)) for name in STACKS},
    "decoder": decoder,
    "vgg19": vgg19,
}
