"""Repeated layers of a model's file, of which a few may stand for all when memory is planned."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto

from tightship.frontend.onnx.tensor import Tensors
from tightship.graph import Constant, DType, size_bytes
from tightship.graph.equal_runs import longest_run
from tightship.sha256 import sha256

KEPT = 1
"""Layers before those that are left out."""
WEIGHTED = frozenset(
    {
        "Add", "Cast", "DequantizeBlocks", "DequantizeLinear", "DequantizeRows", "Gemm",
        "LayerNormalization", "MatMul", "MatMulNBits", "Mul", "RMSNormalization",
        "SimplifiedLayerNormalization", "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization", "Sub", "Transpose",
    }
)  # fmt: skip
"""Operators whose kernels do not depend on the elements of a real vector or matrix."""
BLOCKS = frozenset({"DequantizeBlocks", "DequantizeLinear", "DequantizeRows", "MatMulNBits"})
"""Operators of these whose weights are integers."""
ZERO_POINTS = "zero points"
"""Operand of which kernels need to know whether its elements are equal, and which they are."""
INTEGERS = "integers"
"""Operand that becomes integers, whose elements kernels may depend on."""
FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})

COMPARED_BYTES_MAX = 4 << 20
"""Largest constant, a causal table for instance, that is compared by its elements."""
WHOLE_BYTES_MAX = 64
"""Largest constant that is kept for the comparison, rather than a digest of it."""

Place = tuple[int, int]
"""Node and output that has a value."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Nodes `[start, start + period * count)` of a graph: equal layers, one after another."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        """First node after the layers."""
        return self.start + self.period * self.count


def layers_of(graph: GraphProto, tensors: Tensors) -> Layers | None:
    """Find layers that differ in nothing but weights, and caches among inputs and outputs.

    Each reads values of its own, of the layer before, and of nodes before all layers. None if there
    are fewer than four, or if a node has a graph of its own.

    Args:
        graph: The graph.
        tensors: Reader of its constants; few elements are read.
    """
    if any(attribute.HasField("g") or attribute.graphs
           for node in graph.node for attribute in node.attribute):  # fmt: skip
        return None
    found = _Names.of(graph, tensors)
    kinds: dict[Hashable, int] = {}
    numbers = [
        kinds.setdefault(found.kind(node, index), len(kinds))
        for index, node in enumerate(graph.node)
    ]
    run = longest_run(np.array(numbers))
    if run is None:
        return None
    start, period, count = run
    for skipped in range(2):  # the first of all may compute what the others share
        layers = Layers(start + skipped * period, period, count - skipped)
        if layers.count > KEPT + 2 and found.is_alike(layers):
            return layers
    return None


def leave_out(graph: GraphProto, layers: Layers, count: int) -> None:
    """Remove layers from a graph, so that `count` are left, two at least."""
    removed = (layers.count - count) * layers.period
    first = layers.start + KEPT * layers.period
    gone = graph.node[first : first + removed]
    renamed = {
        name: other
        for node, stands in zip(graph.node[layers.start + removed : first + removed],
                                graph.node[layers.start : first], strict=True)
        for name, other in zip(node.output, stands.output, strict=True)
    }  # fmt: skip
    made = {name for node in gone for name in node.output}
    read = {name for node in gone for name in node.input}
    del graph.node[first : first + removed]
    for node in graph.node[first:]:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    unused = read.difference(*(node.input for node in graph.node))
    for values, names in ((graph.input, unused), (graph.output, made),
                          (graph.initializer, unused), (graph.value_info, made)):  # fmt: skip
        kept = [value for value in values if value.name not in names]
        del values[:]
        values.extend(kept)


@dataclass(frozen=True, slots=True)
class _Names:
    """Meaning of the names of a graph."""

    tensors: Mapping[str, TensorProto]
    inputs: Mapping[str, bytes]
    outputs: frozenset[str]
    makers: Mapping[str, Place]
    reads: Sequence[tuple[str, ...]]
    """Inputs of each node."""
    constant: Callable[[TensorProto, str], Constant]
    forms: dict[tuple[str, int], Hashable] = field(default_factory=dict)
    """Forms of constants by name, and by what they are to an operator."""

    @staticmethod
    def of(graph: GraphProto, tensors: Tensors) -> "_Names":
        return _Names(
            {tensor.name: tensor for tensor in graph.initializer},
            {value.name: value.type.SerializeToString(deterministic=True) for value in graph.input},
            frozenset(value.name for value in graph.output),
            {name: (index, place) for index, node in enumerate(graph.node)
             for place, name in enumerate(node.output)},
            [tuple(node.input) for node in graph.node],
            tensors.constant,
        )  # fmt: skip

    def kind(self, node: NodeProto, index: int) -> Hashable:
        """Return what layers must have in common at a node, but for what its inputs are named."""
        attributes = [each.SerializeToString(deterministic=True) for each in node.attribute]
        operator = node.op_type
        return (
            operator,
            node.domain,
            tuple(sorted(attributes)),
            tuple(
                [
                    self._form(_role(node, place), name)
                    for place, name in enumerate(self.reads[index])
                ]
            ),
            tuple([name in self.outputs for name in node.output]),
        )

    def _form(self, role: str, name: str) -> Hashable:
        """Return what a kernel may depend on of an operand before it runs."""
        if name not in self.tensors:
            return self.inputs.get(name, self.makers.get(name, (0, -1))[1])
        kind = -1 if role == ZERO_POINTS else (role in WEIGHTED) + (role in BLOCKS)
        key = name, kind
        if key not in self.forms:
            self.forms[key] = self._constant_form(role, name)
        return self.forms[key]

    def _constant_form(self, role: str, name: str) -> Hashable:
        tensor = self.tensors[name]
        dims = tuple(tensor.dims)
        form = tensor.data_type, dims
        is_weight = prod(dims) > 1 and role in WEIGHTED
        if is_weight and (tensor.data_type in FLOATS or role in BLOCKS):
            return form
        constant = self.constant(tensor, name)
        size = size_bytes(constant.dtype, constant.shape)
        if size > COMPARED_BYTES_MAX or constant.dtype is DType.STRING:
            return name
        if role == ZERO_POINTS and prod(dims) > 1:
            zeros = constant.array().reshape(-1)
            return form, zeros[:1].tobytes() if (zeros == zeros[0]).all() else None
        content = constant.array().tobytes()
        if size > WHOLE_BYTES_MAX:
            content = sha256(content).digest()
            constant.release()
        return form, content

    def is_alike(self, layers: Layers) -> bool:
        """Whether layers read the same, or what corresponds, and nothing else reads their weights.

        Nodes after the layers may read the last of them.
        """
        read = [self._weights(layers, index) for index in range(layers.count)]
        own: list[dict[str, int]] = [{} for _ in read]
        for weights, names in zip(own, read, strict=True):
            for name in names:
                weights.setdefault(name, len(weights))
        patterns = {tuple(map(each.get, names)) for each, names in zip(own, read, strict=True)}
        every = {name for each in own for name in each}
        inside = range(layers.start, layers.stop - layers.period)
        outside = [*self.reads[: layers.start], *self.reads[layers.stop :]]
        return (
            len(patterns) == 1
            and len(every) == sum(map(len, own))
            and every.isdisjoint(chain.from_iterable(outside))
            and all(self._reads_alike(index, layers) for index in inside)
            and all(self._ends(name, layers) for names in self.reads[layers.stop :]
                    for name in names)
        )  # fmt: skip

    def _weights(self, layers: Layers, index: int) -> list[str]:
        """List weights and caches of a layer, as often as it reads them."""
        first = layers.start + index * layers.period
        other = first - layers.period if index else first + layers.period
        reads, period = self.reads, layers.period
        return [
            name
            for names, twins in zip(
                reads[first : first + period], reads[other : other + period], strict=True
            )
            if names != twins
            for name, twin in zip(names, twins, strict=True)
            if name != twin and name not in self.makers
        ]

    def _reads_alike(self, index: int, layers: Layers) -> bool:
        """Whether a node reads what the same node of the next layer reads, a layer before."""
        layer = (index - layers.start) // layers.period
        for name, other in zip(self.reads[index], self.reads[index + layers.period], strict=True):
            maker, of_twin = self.makers.get(name), self.makers.get(other)
            if (maker is None) != (of_twin is None):
                return False
            if maker is None or of_twin is None or name == other:
                if maker is not None and maker[0] >= layers.start:
                    return False
                continue
            if of_twin[0] - maker[0] != layers.period or of_twin[0] < layers.start:
                return False
            if (of_twin[0] - layers.start) // layers.period < layer:  # the twin's layer is the next
                return False
        return True

    def _ends(self, name: str, layers: Layers) -> bool:
        """Whether a node after the layers may read a value."""
        maker = self.makers.get(name)
        last = layers.stop - layers.period
        return maker is None or not layers.start <= maker[0] < last


def _role(node: NodeProto, place: int) -> str:
    """Name what a constant is to a node: the operator, unless an operand has a rule of its own."""
    operator: str = node.op_type
    if operator == "Cast":
        to_reals = any(each.name == "to" and each.i in FLOATS for each in node.attribute)
        return operator if to_reals else INTEGERS
    if operator != "DequantizeLinear" or place != 2:
        return operator
    is_blocked = any(each.name == "block_size" and each.i for each in node.attribute)
    return operator if is_blocked else ZERO_POINTS
