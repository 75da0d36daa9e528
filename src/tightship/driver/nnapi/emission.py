"""Graph under construction."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.graph import AttributeValue, Constant, Derived, DType, Graph, Inline, Node, Value
from tightship.graph.constant import Array

OPSET = 21
NAMED_BYTES_MAX = 64
"""Size up to which a constant is named by its bytes; a larger one by their digest."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Value of the graph, of known shape."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


@dataclass(slots=True)
class Emission:
    """Nodes, values and constants added so far.

    Attributes:
        prefix: Prefix of the names of new nodes.
    """

    prefix: str = ""
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    _transposes: dict[str, tuple[Tensor, tuple[int, ...]]] = field(default_factory=dict)

    def define(self, tensor: Tensor, constant: Constant | None = None) -> Tensor:
        """Add an input or a constant."""
        self.values[tensor.name] = Value(tensor.name, tensor.dtype, tensor.shape)
        if constant is not None:
            self.constants[tensor.name] = constant
        return tensor

    def emit(
        self,
        operator: str,
        inputs: Sequence[Tensor],
        shape: tuple[int, ...],
        dtype: DType | None = None,
        /,
        **attributes: AttributeValue,
    ) -> Tensor:
        """Add a node with one output, of the first input's type unless `dtype` is given."""
        name = f"{self.prefix}{operator}.{len(self.nodes)}"
        made = self.define(Tensor(name, dtype or inputs[0].dtype, shape))
        names = tuple(each.name for each in inputs)
        self.nodes.append(Node(name, operator, names, (name,), attributes, "", OPSET))
        return made

    def inline(self, array: Array) -> Tensor:
        """Add a small constant; equal ones are shared."""
        dtype = DType.of(array.dtype)
        data = array.tobytes()
        told = data if len(data) <= NAMED_BYTES_MAX else hashlib.sha256(data).digest()
        name = f"{dtype.value}{list(array.shape)}:{told.hex()}"
        return self.define(Tensor(name, dtype, array.shape), Inline(array))

    def number(self, value: float) -> Tensor:
        """Add a float32 scalar constant."""
        return self.inline(np.array(value, np.float32))

    def lengths(self, lengths: tuple[int, ...]) -> Tensor:
        """Add an int64 constant of one axis."""
        return self.inline(np.array(lengths, np.int64))

    def transposed(self, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
        """Transpose so that axis `i` of the result is axis `order[i]`; constants are not read."""
        shape = tuple(tensor.shape[axis] for axis in order)
        if tensor.name in self._transposes:
            source, before = self._transposes[tensor.name]
            if tuple(before[axis] for axis in order) == tuple(range(len(order))):
                return source
        constant = self.constants.get(tensor.name)
        if constant is None:
            made = self.emit("Transpose", [tensor], shape, perm=order)
        else:
            made = self.define(
                Tensor(f"{tensor.name}.{''.join(map(str, order))}", tensor.dtype, shape),
                Derived(
                    tensor.dtype,
                    shape,
                    lambda: constant.array().transpose(order),
                    (constant,),
                    ("transposed", order),
                ),
            )
        self._transposes[made.name] = tensor, order
        return made

    def rename(self, tensor: Tensor, name: str) -> Tensor:
        """Rename the output of the last node."""
        last = self.nodes[-1]
        assert last.outputs == (tensor.name,), last
        self.nodes[-1] = replace(last, outputs=(name,))
        del self.values[tensor.name]
        renamed = self.define(replace(tensor, name=name))
        if tensor.name in self._transposes:
            self._transposes[name] = self._transposes.pop(tensor.name)
        return renamed

    def graph(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Graph:
        """Return the graph of the nodes that the outputs need."""
        needed = {each.name for each in outputs}
        nodes: list[Node] = []
        for node in reversed(self.nodes):
            if needed & set(node.outputs):
                nodes.append(node)
                needed.update(node.inputs)
        kept = needed | {each.name for each in inputs}
        return Graph(
            name,
            tuple(each.name for each in inputs),
            tuple(each.name for each in outputs),
            {key: value for key, value in self.values.items() if key in kept},
            tuple(reversed(nodes)),
            {key: value for key, value in self.constants.items() if key in kept},
        )
