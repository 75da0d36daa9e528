"""A node outside ONNX's own domain, and the nodes of ONNX's that it is written as."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import NodeProto, TensorProto, TypeProto, helper, numpy_helper

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.schema import label

Attribute: TypeAlias = int | float | str | Sequence[int] | Sequence[float] | TensorProto

OPSET = 24
"""The opset that the nodes written have their meaning from."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of names where a node stands."""

    type_of: Callable[[str], TypeProto]
    is_known: Callable[[str], bool]
    """Whether a value follows from shapes and constants."""
    declared: Mapping[str, TypeProto]
    """Types that the file gives to what its nodes write."""


class Spelling:
    """One node being written as others; absent operands have empty names.

    What is written may depend on ranks, element types, attributes and lengths of weights, but on
    no length of an activation: other lengths are run by the same nodes.
    """

    def __init__(self, node: NodeProto, around: Around) -> None:
        self.node = node
        self.nodes: list[NodeProto] = []
        self.is_known = around.is_known
        self._type_of, self._declared = around.type_of, around.declared
        self._given: dict[str, str] = {}
        self._attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        first = next((name for name in node.output if name), node.name)
        self._prefix = f"{first}/{node.op_type}"

    def input(self, index: int) -> str:
        """The name of an input, empty where it is absent."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def wants(self, index: int) -> bool:
        """Whether an output is asked for."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def integer(self, name: str, default: int) -> int:
        """An attribute."""
        return int(self._attributes.get(name, default))

    def number(self, name: str, default: float) -> float:
        """An attribute."""
        return float(self._attributes.get(name, default))

    def text(self, name: str, default: str) -> str:
        """An attribute."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def numbers(self, name: str) -> list[float]:
        """An attribute; empty if it is absent."""
        return list(self._attributes.get(name, ()))

    def others(self, *but: str) -> dict[str, Any]:
        """All attributes except these."""
        return {name: value for name, value in self._attributes.items() if name not in but}

    def shape(self, name: str) -> tuple[int | str | None, ...]:
        """The dimensions of an operand of the node's; those not known are no numbers.

        Raises:
            GraphError: Its rank is not known.
        """
        found = types.shape_of(self._type_of(name))
        if found is None:
            raise GraphError(
                f"Node {label(self.node)} reads `{name}`, whose rank is not known; the operator "
                "can only be read where it is."
            )
        return found

    def declared_shape(self, index: int) -> tuple[int | str | None, ...] | None:
        """The dimensions that the file declares for an output."""
        declared = self._declared.get(self.node.output[index]) if self.wants(index) else None
        return None if declared is None else types.shape_of(declared)

    def length(self, name: str, axis: int) -> int:
        """A dimension of a weight.

        Raises:
            GraphError: It is not known.
        """
        found = self.shape(name)[axis]
        if not isinstance(found, int):
            raise GraphError(
                f"Node {label(self.node)} reads `{name}`, whose axis {axis} must have a known "
                "length; give shapes for the inputs it depends on."
            )
        return found

    def dtype(self, name: str) -> int:
        """ONNX's number of an operand's element type."""
        return int(self._type_of(name).tensor_type.elem_type)

    def __call__(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Write a node; the name of its only output."""
        return self.many(operator, 1, *inputs, **attributes)[0]

    def many(self, operator: str, count: int, *inputs: str, **attributes: Attribute) -> list[str]:
        """Write a node of several outputs."""
        serial = len(self.nodes)
        outputs = [f"{self._prefix}/{operator}{serial}.{index}" for index in range(count)]
        name = f"{self._prefix}/{operator}{serial}"
        kept = list(inputs)
        while kept and not kept[-1]:
            kept.pop()
        self.nodes.append(helper.make_node(operator, kept, outputs, name, **attributes))
        return outputs

    def constant(self, value: ArrayLike, dtype: DTypeLike = np.int64) -> str:
        """A constant of this element type."""
        tensor = numpy_helper.from_array(np.asarray(value, dtype))
        return self("Constant", value=tensor)

    def like(self, value: float, name: str) -> str:
        """A number of an operand's element type."""
        return self.constant(value, helper.tensor_dtype_to_np_dtype(self.dtype(name)))

    def give(self, index: int, name: str) -> None:
        """Make what was written an output of the node, if it is asked for."""
        if not self.wants(index):
            return
        if name in self._given or not any(name in node.output for node in self.nodes):
            name = self("Identity", name)
        self._given[name] = self.node.output[index]

    def finished(self) -> list[NodeProto]:
        """The nodes, outputs under the names that the node had for them."""
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [self._given.get(name, name) for name in names]
        return self.nodes

    def refusal(self, what: str, instead: str) -> GraphError:
        """The error of a node that cannot be written: what it has, and what could be."""
        return GraphError(f"Node {label(self.node)} has {what}, which is not supported: {instead}.")

    def refuse_inputs(self, names: dict[int, str]) -> None:
        """Refuse inputs that are given.

        Raises:
            GraphError: One is.
        """
        for index, name in names.items():
            if self.input(index):
                raise self.refusal(f"the input `{name}`", "leave it out")

    def refuse_outputs(self, names: dict[int, str]) -> None:
        """Refuse outputs that are asked for.

        Raises:
            GraphError: One is.
        """
        for index, name in names.items():
            if self.wants(index):
                raise self.refusal(f"the output `{name}`", "leave it out")

    def refuse_attributes(self, defaults: dict[str, int]) -> None:
        """Refuse attributes that are not as given here.

        Raises:
            GraphError: One is not.
        """
        for name, default in defaults.items():
            found = self.integer(name, default)
            if found != default:
                raise self.refusal(f"`{name}` = {found}", f"only {default} is")
