"""Decomposition of a node outside ONNX's own domain into ONNX's nodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.contrib.translation import (
    REQUIRED,
    WITHOUT,
    Translation,
    Value,
    missing_input,
    parameter_at,
    refused_attribute,
    refused_operand,
)
from tightship.frontend.onnx.schema import label

Attribute: TypeAlias = int | float | str | Sequence[int] | Sequence[float] | TensorProto

OWN_DOMAIN = "tightship"
OPSET = 24
"""Opset of the nodes that are written."""


@dataclass(frozen=True, slots=True)
class Around:
    """Facts about the names around a node."""

    type_of: Callable[[str], TypeProto]
    is_known: Callable[[str], bool]
    """Whether a value follows from shapes and constants."""
    declared: Mapping[str, TypeProto]
    """Types that the file declares for outputs of nodes."""


class Pattern:
    """Decomposition of one node under construction; absent operands have empty names.

    It may depend on ranks, element types, attributes and lengths of weights, but not on lengths of
    activations, so that it is valid for other lengths.

    Everything the node has must be named by its translation (checked on creation) and read (checked
    at the end), so that nothing is ignored silently.
    """

    def __init__(self, node: NodeProto, around: Around, translation: Translation) -> None:
        self.node = node
        self.nodes: list[NodeProto] = []
        self.types: dict[str, TypeProto] = {}
        """Types of outputs of nodes that ONNX does not have."""
        self.is_known = around.is_known
        self._type_of, self._declared = around.type_of, around.declared
        self._given: dict[str, str] = {}
        self._translation = translation
        self._attributes = {each.name: self._value(each) for each in node.attribute}
        self.attributes_read: set[str] = set()
        self.inputs_read: set[int] = set()
        first = next((name for name in node.output if name), node.name)
        self._prefix = f"{first}/{node.op_type}"
        self._refuse_unnamed()

    def input(self, index: int) -> str:
        """Return the name of an input, empty if it is absent."""
        self.inputs_read.add(index)
        return self.node.input[index] if index < len(self.node.input) else ""

    def inputs(self) -> list[str]:
        """Return the names of all inputs."""
        return [self.input(index) for index in range(len(self.node.input))]

    def wants(self, index: int) -> bool:
        """Whether an output is present."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def integer(self, name: str) -> int:
        """Return an attribute that is an integer."""
        value = self._attribute(name)
        if not isinstance(value, int):
            raise self.refusal(f"`{name}` = {value!r}", "it must be an integer")
        return value

    def count(self, name: str) -> int:
        """Return an integer attribute that is at least 1."""
        found = self.integer(name)
        if found < 1:
            raise self.refusal(f"`{name}` = {found}", "it must be at least 1")
        return found

    def number(self, name: str, default: float | None = None) -> float:
        """Return a number attribute; `default` if the translation has no default."""
        value = self._attribute(name)
        value = default if value is None else value
        if not isinstance(value, (int, float)):
            raise self.refusal(f"`{name}` = {value!r}", "it must be a number")
        return float(value)

    def text(self, name: str) -> str:
        """Return a text attribute."""
        return str(self._attribute(name))

    def numbers(self, name: str) -> list[float]:
        """Return an attribute that is a list of numbers; empty if absent."""
        value = self._attribute(name)
        if not isinstance(value, tuple) or any(isinstance(each, str) for each in value):
            raise self.refusal(f"`{name}` = {value!r}", "it must be a list of numbers")
        return [float(each) for each in value]

    def present(self, *names: str) -> dict[str, Any]:
        """Return those of these attributes that the node has, to copy them."""
        self.attributes_read.update(names)
        found = {name: self._attributes.get(name) for name in names}
        return {name: value for name, value in found.items() if value not in (None, ())}

    def _attribute(self, name: str) -> Value:
        default = self._translation.attributes[name]
        self.attributes_read.add(name)
        return self._attributes.get(name, default)

    def _refuse_unnamed(self) -> None:
        """Refuse anything that the translation does not name, and missing required parts."""
        consumed, node = self._translation, self.node
        refused = [
            *(refused_attribute(consumed, *each) for each in self._attributes.items()),
            refused_operand(consumed.inputs, "input", node.input),
            refused_operand(consumed.outputs, "output", node.output),
        ]
        for each in refused:
            if each is not None:
                raise self.refusal(*each)
        for name, default in consumed.attributes.items():
            if default == REQUIRED and name not in self._attributes:
                raise GraphError(f"Node {label(node)} lacks the attribute `{name}`.")
        missing = missing_input(consumed.inputs, node.input)
        if missing is not None:
            raise GraphError(f"Node {label(node)} lacks the input `{missing}`.")

    def _refuse_unread(self) -> None:
        """Refuse anything that the node has and the translation did not read."""
        defaults = self._translation.attributes
        for name in defaults.keys() & self._attributes.keys() - self.attributes_read:
            value = self._attributes[name]
            if value != defaults[name]:
                raise self.refusal(f"`{name}` = {value} beside its other options", WITHOUT)
        for place, name in enumerate(self.node.input):
            parameter = parameter_at(self._translation.inputs, place)
            if name and parameter is not None and place not in self.inputs_read:
                raise self.refusal(f"the input `{parameter.name}` beside its others", WITHOUT)

    def shape(self, name: str) -> tuple[int | str | None, ...]:
        """Return the dimensions of an operand; unknown ones are not numbers.

        Raises:
            GraphError: Its rank is unknown.
        """
        found = types.shape_of(self._type_of(name))
        if found is None:
            raise GraphError(
                f"Node {label(self.node)} reads `{name}`, whose rank is unknown; give shapes for "
                "the inputs it depends on."
            )
        return found

    def declared_shape(self, index: int) -> tuple[int | str | None, ...] | None:
        """Return the dimensions that the file declares for an output."""
        declared = self._declared.get(self.node.output[index]) if self.wants(index) else None
        return None if declared is None else types.shape_of(declared)

    def dimension(self, name: str, axis: int) -> int | str | None:
        """Return a dimension of an operand, not a number if it is unknown.

        Raises:
            GraphError: The axis does not exist, or the rank is unknown.
        """
        shape = self.shape(name)
        if axis >= len(shape):
            raise self.refusal(f"`{name}` of {len(shape)} axes", f"it must have axis {axis}")
        return shape[axis]

    def length(self, name: str, axis: int) -> int:
        """Return a dimension of a weight.

        Raises:
            GraphError: It is unknown, or the axis does not exist.
        """
        found = self.dimension(name, axis)
        if not isinstance(found, int):
            raise GraphError(
                f"Node {label(self.node)} reads `{name}`, whose axis {axis} must have a known "
                "length; give shapes for the inputs it depends on."
            )
        return found

    def dtype(self, name: str) -> int:
        """Return ONNX's number of an operand's element type."""
        return int(self._type_of(name).tensor_type.elem_type)

    def __call__(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Write a node; return the name of its only output."""
        return self.many(operator, 1, *inputs, **attributes)[0]

    def many(self, operator: str, count: int, *inputs: str, **attributes: Attribute) -> list[str]:
        """Write a node with several outputs; return their names."""
        serial = len(self.nodes)
        outputs = [f"{self._prefix}/{operator}{serial}.{index}" for index in range(count)]
        name = f"{self._prefix}/{operator}{serial}"
        kept = list(inputs)
        while kept and not kept[-1]:
            kept.pop()
        self.nodes.append(helper.make_node(operator, kept, outputs, name, **attributes))
        return outputs

    def own(
        self,
        operator: str,
        result: tuple[int, Sequence[int]],
        *inputs: str,
        **attributes: Attribute,
    ) -> str:
        """Write a node of an operator of our own, whose only output has this type and shape."""
        name = self(operator, *inputs, **attributes)
        self.nodes[-1].domain = OWN_DOMAIN
        self.types[name] = types.with_shape(*result)
        return name

    def constant(self, value: ArrayLike, dtype: DTypeLike = np.int64) -> str:
        """Write a constant of this element type."""
        tensor = numpy_helper.from_array(np.asarray(value, dtype))
        return self("Constant", value=tensor)

    def like(self, value: float, name: str) -> str:
        """Write a number of an operand's element type."""
        return self.constant(value, helper.tensor_dtype_to_np_dtype(self.dtype(name)))

    def give(self, index: int, name: str) -> None:
        """Make a written value an output of the node, if that is present."""
        if not self.wants(index):
            return
        if name in self._given or not any(name in node.output for node in self.nodes):
            name = self("Identity", name)
        self._given[name] = self.node.output[index]

    def finished(self) -> list[NodeProto]:
        """Return the nodes, with outputs under the node's own names.

        Raises:
            GraphError: Something that the node has was not read.
        """
        self._refuse_unread()
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [self._given.get(name, name) for name in names]
        self.types = {self._given.get(name, name): each for name, each in self.types.items()}
        return self.nodes

    def refusal(self, what: str, instead: str) -> GraphError:
        """Return the error for an unsupported property, with an alternative."""
        return GraphError(f"Node {label(self.node)} has {what}, which is not supported: {instead}.")

    def _value(self, attribute: AttributeProto) -> Value:
        """Return the value of an attribute, lists as tuples and bytes as text.

        Raises:
            GraphError: It is a tensor, a graph or a type.
        """
        if attribute.type not in _PLAIN:
            raise self.refusal(f"the attribute `{attribute.name}`", WITHOUT)
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode(errors="surrogateescape")
        return value if isinstance(value, (int, float)) else tuple(map(_text, value))


_PLAIN = frozenset(
    {AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING, AttributeProto.INTS,
     AttributeProto.FLOATS, AttributeProto.STRINGS}
)  # fmt: skip


def _text(value: Any) -> Any:  # noqa: ANN401  an element of an attribute, of any type
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
