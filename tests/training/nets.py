"""Small networks to train, a member of each family, and what they are fed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper, numpy_helper, parser

Array = NDArray[Any]


@dataclass(frozen=True)
class Net:
    """A model, its loss, and the inputs of a step; labels among them."""

    model: bytes
    loss: str
    feeds: dict[str, Array]


def net(text: str, loss: str, feeds: dict[str, Array], **shapes: tuple[int, ...]) -> Net:
    """A model in ONNX's text form; weights of the given shapes, scales of one axis near 1."""
    random = np.random.default_rng(5)
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    for name, shape in shapes.items():
        spread = 1 / np.sqrt(max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.1
        array = random.standard_normal(shape) * spread
        if name.startswith(("scale", "variance")):
            array = 1 + 0.1 * np.abs(array)
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return Net(model.SerializeToString(), loss, feeds)


def ints(*numbers: int) -> Any:
    """A constant for shapes."""
    return helper.make_tensor("", 7, [len(numbers)], numbers)


def floats(*shape: int) -> Array:
    """An input."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def labels(classes: int, *shape: int) -> Array:
    """Classes."""
    return np.random.default_rng(8).integers(0, classes, shape)


def mlp() -> Net:
    """Two layers, batch 8."""
    return net(
        """mlp (float[8,10] x) => (float[8,4] y) {
            h = Gemm (x, w1, b1)
            g = Relu (h)
            y = Gemm <transB = 1> (g, w2, b2)
        }""",
        "cross_entropy",
        {"x": floats(8, 10), "labels": labels(4, 8)},
        w1=(10, 16), b1=(16,), w2=(4, 16), b2=(4,),
    )  # fmt: skip
