"""Networks of any size whose weights take no memory: for what looks at shapes only."""

from dataclasses import replace

import numpy as np
from onnx import TensorProto, helper
from tests.zoo.net import Net

from tightship.frontend.onnx import read_bytes
from tightship.graph import Fill, Graph


class Hollow(Net):
    """A net whose weights, biases and scales are zeros that no file has written out."""

    def __init__(self, opset: int) -> None:
        super().__init__(0, opset)
        self._count = 0

    def weight(self, *shape: int, fan_in: float = 0) -> str:  # noqa: ARG002
        """Zeros."""
        self._count += 1
        name = f"weight{self._count}"
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def bias(self, *shape: int) -> str:
        """Zeros."""
        return self.weight(*shape)

    def positive(self, *shape: int) -> str:
        """Zeros as well."""
        return self.weight(*shape)


def graph_of(model: bytes) -> Graph:
    """The graph of a model that a `Hollow` net has written, its weights constants."""
    graph = read_bytes(model)
    weights = [name for name in graph.inputs if name.startswith("weight")]
    zero = np.zeros((), np.float32)
    held = {name: Fill(zero, graph.value(name).static_shape) for name in weights}
    return replace(
        graph,
        inputs=tuple(name for name in graph.inputs if name not in held),
        constants={**graph.constants, **held},
    )
