"""Networks written a line an operator, with weights from a seed that keep activations finite."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import GraphProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET = 20
IR_VERSION = 9
"""Old enough for every ONNX Runtime that the tests may find."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A model and inputs to run it on."""

    model: bytes
    feeds: dict[str, Array]


class Net:
    """A model being written. Calling it adds a node and returns the name of its output."""

    def __init__(self, seed: int = 0, opset: int = OPSET) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self.feeds: dict[str, Array] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[str] = []
        self._constants: list[TensorProto] = []

    def input(self, name: str, value: ArrayLike) -> str:
        """An input of the shape and dtype of `value`, which it is run on."""
        array = np.asarray(value)
        self.feeds[name] = array
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self._inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        return name

    def normal(self, name: str, *shape: int) -> str:
        """An input of standard normal numbers."""
        return self.input(name, self.random.standard_normal(shape).astype(np.float32))

    def constant(self, value: ArrayLike) -> str:
        """An initializer."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def scalar(self, value: float) -> str:
        """A float32 initializer of rank 0."""
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        """An int64 vector."""
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int, fan_in: float = 0) -> str:
        """Normal numbers with variance `2 / fan_in`; the fan is counted from axis 1 if 0."""
        fan_in = fan_in or math.prod(shape[1:]) or 1
        numbers = self.random.standard_normal(shape) * math.sqrt(2 / fan_in)
        return self.constant(numbers.astype(np.float32))

    def bias(self, *shape: int) -> str:
        """Small normal numbers."""
        return self.constant((0.1 * self.random.standard_normal(shape)).astype(np.float32))

    def positive(self, *shape: int) -> str:
        """Numbers from 0.5 to 1.5: scales and variances."""
        return self.constant(self.random.uniform(0.5, 1.5, shape).astype(np.float32))

    def __call__(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self.many(operator, 1, *inputs, domain=domain, **attributes)[0]

    def many(
        self, operator: str, count: int, *inputs: str, domain: str = "", **attributes: Any
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
        """The graph so far; its outputs have no types."""
        known = {value.name: value for value in (*self._inputs, *map(_type_of, self._constants))}
        outputs = [known.get(name, ValueInfoProto(name=name)) for name in self._outputs]
        return helper.make_graph(self._nodes, name, self._inputs, outputs, self._constants)

    def case(self) -> Case:
        """The finished model, its output types inferred."""
        model = helper.make_model(
            self.graph(),
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=IR_VERSION,
        )
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        return Case(inferred.SerializeToString(), dict(self.feeds))


def _type_of(constant: TensorProto) -> ValueInfoProto:
    return helper.make_tensor_value_info(constant.name, constant.data_type, constant.dims)
