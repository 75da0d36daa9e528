"""Opens the batch of a model whose file fixes it."""

from collections.abc import Iterable

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tightship.graph import Graph
from tightship.graph.batch_axis import Batched, FixedBatchError, Repeated, Target, follow_batch

BATCH = "batch"
"""Name of the opened dimension."""


def open_batch(proto: GraphProto, graph: Graph) -> None:
    """Open the batch of a model in place; its other lengths become those of a graph.

    Args:
        proto: Main graph of the model.
        graph: The same graph as it was read, for all lengths of the file.

    Raises:
        FixedBatchError: A node does not keep samples apart; the model is unchanged.
    """
    found = follow_batch(graph)
    writer = _Writer(proto, found)
    writer.check(found)
    for value in (*proto.input, *proto.output, *proto.value_info):
        if value.name in found.axes:
            _open(value, found.axes[value.name], is_input=value.name in graph.inputs)
    for target in found.targets:
        writer.name_batch(target)
    for repeated in found.repeated:
        writer.repeat(repeated)


def _open(value: ValueInfoProto, axis: int, *, is_input: bool) -> None:
    """Open a dimension: an input's has the name of the batch, another follows from it."""
    dimensions = value.type.tensor_type.shape.dim
    if axis < len(dimensions):
        dimensions[axis].Clear()
        if is_input:
            dimensions[axis].dim_param = BATCH


class _Writer:
    """Changes operands of nodes, and adds constants and nodes; a reader puts these in order."""

    def __init__(self, proto: GraphProto, batched: Batched) -> None:
        self._proto = proto
        self._batch = batched.batch
        self._nodes = {name: node for node in proto.node for name in node.output if name}
        self._input = batched.input
        self._count = self._place = 0
        self._taken = _names(proto)

    def check(self, found: Batched) -> None:
        """Refuse nodes that are not in the file as such."""
        changes: tuple[Target | Repeated, ...] = (*found.targets, *found.repeated)
        for each in changes:
            node = self._nodes.get(each.output)
            if node is None or node.op_type != each.operator:
                raise FixedBatchError(
                    f"The node of `{each.output}` names the batch within a function of the model, "
                    "or within an operator that is written as several."
                )

    def name_batch(self, target: Target) -> None:
        """Let a shape follow the batch: a Reshape computes it, an Expand keeps it."""
        node, shape = self._nodes[target.output], list(target.shape)
        self._place = self._place_of(target.output)
        if node.op_type == "Resize":
            node.input[target.index] = self._lengths(shape, target.axis)
            return
        shape[target.axis] = 1 if node.op_type == "Expand" else -1
        node.input[target.index] = self._constant(np.array(shape, np.int64))

    def repeat(self, repeated: Repeated) -> None:
        """Give each sample a copy of the first sample's part of a constant."""
        node = self._nodes[repeated.output]
        name, axis = node.input[repeated.index], repeated.axis
        self._place = self._place_of(repeated.output)
        zero = self._constant(np.zeros(1, np.int64))
        one = self._add("Gather", [name, zero], axis=axis)
        lengths = [1] * self._rank_of(name)
        lengths[axis] = self._batch
        node.input[repeated.index] = self._add("Expand", [one, self._lengths(lengths, axis)])

    def _lengths(self, shape: list[int], axis: int) -> str:
        """Write a shape whose length along `axis` is in proportion to the batch."""
        zero = self._constant(np.zeros(1, np.int64))
        length = self._add("Gather", [self._add("Shape", [self._input]), zero], axis=0)
        each = shape[axis] // self._batch
        if each > 1:
            length = self._add("Mul", [length, self._constant(np.array([each], np.int64))])
        around = [self._constant(np.array(x, np.int64)) for x in (shape[:axis], shape[axis + 1 :])]
        return self._add("Concat", [around[0], length, around[1]], axis=0)

    def _place_of(self, output: str) -> int:
        """Return the index of the node of an output, before which new nodes are put."""
        return next(i for i, node in enumerate(self._proto.node) if output in node.output)

    def _rank_of(self, name: str) -> int:
        for tensor in self._proto.initializer:
            if tensor.name == name:
                return len(tensor.dims)
        (attribute,) = self._nodes[name].attribute
        value = helper.get_attribute_value(attribute)
        return len(value.dims) if isinstance(value, TensorProto) else np.ndim(value)

    def _constant(self, value: np.ndarray) -> str:
        name = self._new()
        self._proto.initializer.append(numpy_helper.from_array(value, name))
        return name

    def _add(self, operator: str, inputs: list[str], **attributes: int) -> str:
        name = self._new()
        node = helper.make_node(operator, inputs, [name], name, **attributes)
        self._proto.node.insert(self._place, node)
        self._place += 1
        return name

    def _new(self) -> str:
        while f"{BATCH}.{self._count}" in self._taken:
            self._count += 1
        self._count += 1
        return f"{BATCH}.{self._count - 1}"


def _names(proto: GraphProto) -> set[str]:
    values: Iterable[ValueInfoProto | TensorProto] = (*proto.input, *proto.initializer)
    return {each.name for each in values} | {name for node in proto.node for name in node.output}
