"""Networks written a line an operator, with weights from a seed that keep activations finite."""

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

OPSET = 20
IR_VERSION = 9
"""Old enough for every ONNX Runtime of the last years."""

PIECE = 1 << 20
"""Weights that are drawn at once."""

Length = int | str
"""Length of an axis, or the name of an open one."""


class Network:
    """A model being written. Calling it adds a node and returns the name of its output."""

    def __init__(self, seed: int = 0, opset: int = OPSET) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[str] = []
        self._constants: list[TensorProto] = []

    def declare(self, name: str, dtype: DTypeLike, shape: tuple[Length, ...]) -> str:
        """Add an input."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def normal(self, name: str, *shape: Length) -> str:
        """Add an input of real numbers about zero."""
        return self.declare(name, np.float32, shape)

    def constant(self, value: ArrayLike) -> str:
        """Add an initializer."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def scalar(self, value: float) -> str:
        """Add a float32 initializer of rank 0."""
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        """Add an int64 vector."""
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int, fan_in: float = 0) -> str:
        """Draw normal numbers of variance `2 / fan_in`; the fan is counted from axis 1 if 0."""
        fan_in = fan_in or math.prod(shape[1:]) or 1
        numbers = np.empty(math.prod(shape), np.float32)
        for start in range(0, len(numbers), PIECE):  # drawn as float64, which is twice as much
            piece = numbers[start : start + PIECE]
            piece[:] = self.random.standard_normal(len(piece)) * math.sqrt(2 / fan_in)
        return self.constant(numbers.reshape(shape))

    def bias(self, *shape: int) -> str:
        """Draw small normal numbers."""
        return self.constant((0.1 * self.random.standard_normal(shape)).astype(np.float32))

    def positive(self, *shape: int) -> str:
        """Draw numbers from 0.5 to 1.5, as scales and variances are."""
        return self.constant(self.random.uniform(0.5, 1.5, shape).astype(np.float32))

    def __call__(self, operator: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        """Add a node with one output; return its name."""
        return self.many(operator, 1, *inputs, domain=domain, **attributes)[0]

    def many(
        self, operator: str, count: int, *inputs: str, domain: str = "", **attributes: object
    ) -> list[str]:
        """Add a node with several outputs; return their names."""
        index = len(self._nodes)
        names = [f"{operator.lower()}{index}" + (f".{k}" if k else "") for k in range(count)]
        name = f"{operator}_{index}"
        self._nodes.append(
            helper.make_node(operator, inputs, names, name, domain=domain, **attributes)
        )
        return names

    def output(self, *names: str) -> None:
        """Make values outputs of the model; their types are left to inference."""
        self._outputs.extend(names)

    def graph(self, name: str = "net") -> GraphProto:
        """Return the graph so far; its outputs have no types."""
        known = {value.name: value for value in (*self._inputs, *map(_type_of, self._constants))}
        outputs = [known.get(name, ValueInfoProto(name=name)) for name in self._outputs]
        return helper.make_graph(self._nodes, name, self._inputs, outputs, self._constants)

    def model(self, name: str = "net") -> ModelProto:
        """Return the finished model, its output types inferred."""
        model = helper.make_model(
            self.graph(name),
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=IR_VERSION,
        )
        return shape_inference.infer_shapes(model, check_type=True, strict_mode=True)


def _type_of(constant: TensorProto) -> ValueInfoProto:
    return helper.make_tensor_value_info(constant.name, constant.data_type, constant.dims)
