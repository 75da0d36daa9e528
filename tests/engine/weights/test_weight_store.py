"""Weights are known by what they are, though their file is read again."""

from collections.abc import Iterable

import numpy as np
import pytest

from tests.zoo import open_lengths
from tests.zoo.catalogue import SMALL
from tests.zoo.exports import EXPORTS, export
from tests.zoo.net import Net
from tightship._core import HostResource
from tightship.engine.library import open_library
from tightship.engine.lower.selection import lower
from tightship.engine.program.program import PackedWeight
from tightship.engine.weights.weight_store import PackedCopy, WeightStore
from tightship.frontend.onnx import open_bytes

SHAPES = {
    **{name: {"ids": (2, 8), "mask": (2, 8)} for name in EXPORTS},
    "line": {"x": (1, 3, 32, 40)},
    "picture": {"x": (1, 3, 8, 40)},
    "words": {"x": (1, 3, 8, 40)},
    "speech": {"x": (1, 8, 64)},
}


def halves() -> bytes:
    """A convolution, a product and a norm in half precision, which kernels run in single."""
    net = Net(1, opset=17)

    def weight(*shape: int) -> str:
        return net.constant(net.random.standard_normal(shape).astype(np.float16))

    x = net("Conv", net.input("x", np.zeros((1, 8, 9, 9), np.float16)), weight(16, 8, 3, 3))
    x = net("Flatten", net("BatchNormalization", x, *[weight(16) for _ in range(4)]))
    x = net("MatMul", x, weight(784, 64))
    net.output(net("LayerNormalization", x, weight(64), weight(64)))
    return net.case().model


def source(name: str) -> bytes:
    if name == "halves":
        return halves()
    if name in EXPORTS:
        return export(name)
    return SMALL[name](1).model if name in SMALL else getattr(open_lengths, name)()


def store_of(weights: Iterable[PackedWeight]) -> WeightStore:
    """A store with a copy of each, of which nothing is read."""
    store = WeightStore(HostResource())
    store.adopt(PackedCopy(weight, None, 0) for weight in weights)
    return store


@pytest.mark.parametrize("name", ["halves", *SMALL, *SHAPES])
def test_a_file_that_is_read_again_has_no_new_weights(name: str) -> None:
    open_library()
    file = open_bytes(source(name))
    first, again = (lower(file.graph(SHAPES.get(name))) for _ in range(2))
    missing = store_of(first.weights).missing(again.weights)
    assert [(weight.name, weight.size_bytes) for weight in missing] == []
