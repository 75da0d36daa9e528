"""The light models of the onnx package, and the same with weights filled from a seed."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, numpy_helper

from tests.zoo.net import Case
from tests.zoo.oracle import quiet

Vector = NDArray[np.float32]

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
NAMES = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
    "squeezenet", "vgg19", "zfnet512",
)  # fmt: skip
QUICK = ("inception_v1", "resnet50", "shufflenet", "squeezenet")
"""Models whose weights take little time to fill."""
SHAPE = (1, 3, 224, 224)


def path_of(name: str) -> Path:
    """The file of a light model."""
    return FOLDER / f"light_{name}.onnx"


def input_name(model: onnx.ModelProto) -> str:
    """The one input that is no initializer."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    (name,) = (i.name for i in model.graph.input if i.name not in initializers)
    return name


def stored_case(name: str) -> tuple[Case, Vector]:
    """A light model with the input its stored output was made from, and that output.

    Source: `onnx.backend.test.runner.Runner.generate_dummy_data`, a ramp from 0 to 1.
    """
    model = onnx.load(path_of(name))
    count = math.prod(SHAPE)
    ramp = (np.arange(count).reshape(SHAPE) / count).astype(np.float32)
    stored = TensorProto()
    stored.ParseFromString((FOLDER / f"light_{name}_output_0.pb").read_bytes())
    case = Case(model.SerializeToString(), {input_name(model): ramp})
    return case, numpy_helper.to_array(stored)


def randomised(name: str, seed: int, folder: Path, *, external: bool = False) -> Path:
    """Write a light model whose weights are initializers filled from a seed.

    Convolutions and Gemms get normal numbers of variance `2 / fan_in` (He), variances and
    scales lie near one, the rest is small, so that activations stay finite. The last layer is
    scaled for its outputs to have deviation one, so that no softmax hides an error.

    Args:
        name: Which.
        seed: Of the numbers.
        folder: Where to write it.
        external: Whether the weights go to a file of their own.
    """
    model = onnx.load(path_of(name))
    random = np.random.default_rng(seed)
    roles = _roles(model.graph.node)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept: list[NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(int(d) for d in shapes[node.input[0]])
        values = _filled(random, roles.get(node.output[0], "Add"), shape)
        model.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    _scale_last_layer(model)
    path = folder / f"{name}.onnx"
    onnx.save(model, path, save_as_external_data=external, location=f"{name}.bin")
    return path


def _roles(nodes: Iterable[NodeProto]) -> dict[str, str]:
    """Map each weight to its role in its first reader, as `operator` or `operator.index`."""
    roles: dict[str, str] = {}
    for node in nodes:
        for index, name in enumerate(node.input):
            role = roles.get(name)
            if node.op_type == "Unsqueeze":
                roles[node.output[0]] = f"from {name}"
            elif role is None:
                roles[name] = f"{node.op_type}.{index}"
            elif role.startswith("from "):
                roles[role.removeprefix("from ")] = f"{node.op_type}.{index}"
    return roles


def _scale_last_layer(model: onnx.ModelProto) -> None:
    """Divide the weights and bias of the last layer by the deviation of what it makes."""
    last = next(n for n in reversed(model.graph.node) if n.op_type in ("Conv", "Gemm"))
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.ValueInfoProto(name=last.output[0]))
    session = onnxruntime.InferenceSession(probe.SerializeToString(), quiet())
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    (made,) = session.run(None, {input_name(model): x})
    for tensor in model.graph.initializer:
        if tensor.name in last.input[1:]:
            array = numpy_helper.to_array(tensor) / np.float32(made.std())
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _filled(random: np.random.Generator, role: str, shape: tuple[int, ...]) -> Vector:
    if role in ("Conv.1", "Gemm.1"):
        deviation = math.sqrt(2 / math.prod(shape[1:]))
        return (deviation * random.standard_normal(shape)).astype(np.float32)
    if role in ("BatchNormalization.1", "BatchNormalization.4", "Mul.0", "Mul.1"):
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    return (0.1 * random.standard_normal(shape)).astype(np.float32)
