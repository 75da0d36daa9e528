"""Inference of one node's output types."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, NodeProto, TypeProto, numpy_helper
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.shape_inference import InferenceError, infer_node_outputs

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.operands import misfit
from tightship.frontend.onnx.schema import Opsets
from tightship.graph import Constant

_EINSUM = re.compile(rb"[A-Za-z.,\s]*(->[A-Za-z.\s]*)?")


def check_node(node: NodeProto, owner: str) -> None:
    """Check a node before it is passed to the inference.

    Raises:
        GraphError: An attribute is malformed.
    """
    if node.op_type not in ("Einsum", "Split"):
        return
    attributes = {attribute.name: attribute for attribute in node.attribute}
    equation, count = attributes.get("equation"), attributes.get("num_outputs")
    if equation is not None and not _EINSUM.fullmatch(equation.s):
        raise GraphError(
            f"{owner} has the equation {equation.s[:64]!r}; it may hold letters, commas, dots and "
            "one `->`."
        )
    if count is not None and count.i != len(node.output):
        raise GraphError(f"{owner} has num_outputs={count.i}, but {len(node.output)} outputs.")


_SAME_SHAPE = frozenset({"Dropout", "GroupNormalization", "MeanVarianceNormalization"})
"""Operators without an inference rule whose outputs have the shape of their first input."""

_DEFAULTS_STATED = {"STFT": ("onesided",)}

_ELEMENT_NUMBERS = {
    "tensor(float)": 1,
    "tensor(int64)": 7,
    "tensor(string)": 8,
    "tensor(bool)": 9,
    "tensor(double)": 11,
}


class UntypedError(GraphError):
    """A node does not accept operands of these types or shapes, but might accept others.

    Callers of the frontend get a `GraphError`; a branch of an If may remain untyped.
    """


@dataclass(frozen=True, slots=True)
class InferenceCall:
    """Node, types of its inputs, and values of inputs that may determine shapes."""

    node: NodeProto
    schema: OpSchema
    inputs: Mapping[str, TypeProto]
    data: Mapping[str, Constant]
    owner: str
    """Name of the node in messages."""


@dataclass(frozen=True, slots=True)
class Inference:
    """Inference of a model's nodes, with results shared by equal nodes.

    Nodes are equal if operator, attributes, known values and, by identity, types of inputs are.
    Equal types that it returns are the same object and must not be changed.
    """

    ir_version: int
    _found: dict[Hashable, tuple[InferenceCall, Sequence[TypeProto]]] = field(default_factory=dict)
    """Results with their calls, kept so that no other type gets the identity of one of theirs."""
    _types: dict[bytes, TypeProto] = field(default_factory=dict)

    def outputs(self, call: InferenceCall, opsets: Opsets) -> Sequence[TypeProto]:
        """Return the types of a node's outputs, unknown if they cannot be inferred.

        Raises:
            GraphError: An attribute is malformed.
            UntypedError: The operator does not accept these inputs.
        """
        key = _key(call, opsets)
        found = self._found.get(key)
        if found is None:
            types_ = _infer(call, opsets, self.ir_version)
            found = self._found[key] = (
                call,
                list(map(self.shared, types_)),
            )
        return found[1]

    def shared(self, type_: TypeProto) -> TypeProto:
        """Return the object that stands for all types equal to one, which must not be changed."""
        return self._types.setdefault(type_.SerializeToString(), type_)


def _key(call: InferenceCall, opsets: Opsets) -> Hashable:
    """Return everything that determines the types of a node's outputs, without names."""
    node, inputs, data = call.node, call.inputs, call.data
    return (
        id(call.schema),
        id(opsets),
        tuple([attribute.SerializeToString() for attribute in node.attribute]),
        tuple([id(inputs[name]) if name else 0 for name in node.input]),
        tuple([_content(data[name]) if name in data else None for name in node.input]),
        tuple([name != "" for name in node.output]),
    )


def _content(constant: Constant) -> Hashable:
    array = constant.array()
    return array.dtype, array.shape, array.tobytes()


def _infer(call: InferenceCall, opsets: Opsets, ir_version: int) -> Sequence[TypeProto]:
    check_node(call.node, call.owner)
    why = misfit(call.node, call.inputs, call.owner, call.schema.since_version)
    if why is not None:
        raise UntypedError(f"{call.owner} cannot be typed: {why}.")
    try:
        outputs: Mapping[str, TypeProto] = infer_node_outputs(
            call.schema,
            _with_defaults(_without_graphs(call.node), call.schema),
            call.inputs,
            {name: numpy_helper.from_array(value.array()) for name, value in call.data.items()},
            opset_imports=opsets.protos,
            ir_version=ir_version,
        )
    except (InferenceError, ValidationError, RuntimeError, ValueError, IndexError) as error:
        if all(map(types.is_known, call.inputs.values())):
            raise UntypedError(f"{call.owner} cannot be typed: {_reason(error)}") from None
        outputs = {}
    unknown = TypeProto()
    found = [types.sound(outputs.get(name, unknown)) for name in call.node.output]
    if call.schema.name in _SAME_SHAPE:
        return [_of_first_input(call, index, type_) for index, type_ in enumerate(found)]
    if all(map(types.is_known, found)):
        return found
    return [
        type_ if types.is_known(type_) else _by_constraint(call, index)
        for index, type_ in enumerate(found)
    ]


def _of_first_input(call: InferenceCall, index: int, type_: TypeProto) -> TypeProto:
    known = type_ if types.is_tensor(type_) else _by_constraint(call, index)
    if not types.is_tensor(known) or known.tensor_type.HasField("shape"):
        return known
    first = call.inputs.get(call.node.input[0], TypeProto())
    shape = types.shape_of(first)
    return types.with_shape(known.tensor_type.elem_type, shape)


def _by_constraint(call: InferenceCall, index: int) -> TypeProto:
    """Return the element type that an operator's signature alone determines."""
    schema, inputs = call.schema, call.inputs
    text = schema.outputs[min(index, len(schema.outputs) - 1)].type_str
    if text in _ELEMENT_NUMBERS:
        return types.with_shape(_ELEMENT_NUMBERS[text], None)
    for formal, name in zip(schema.inputs, call.node.input, strict=False):
        if formal.type_str == text and name and types.is_tensor(inputs[name]):
            return types.with_shape(inputs[name].tensor_type.elem_type, None)
    return TypeProto()


def _without_graphs(node: NodeProto) -> NodeProto:
    if all(attribute.type != AttributeProto.GRAPH for attribute in node.attribute):
        return node
    plain = NodeProto(op_type=node.op_type, domain=node.domain, name=node.name)
    plain.input.extend(node.input)
    plain.output.extend(node.output)
    plain.attribute.extend(a for a in node.attribute if a.type != AttributeProto.GRAPH)
    return plain


def _with_defaults(node: NodeProto, schema: OpSchema) -> NodeProto:
    """State the defaults of attributes that onnx's inference takes for zero where they are not."""
    names = _DEFAULTS_STATED.get(schema.name, ()) if not schema.domain else ()
    missing = set(names) - {attribute.name for attribute in node.attribute}
    if not missing:
        return node
    stated = NodeProto()
    stated.CopyFrom(node)
    stated.attribute.extend(schema.attributes[name].default_value for name in sorted(missing))
    return stated


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if text.endswith(".") else f"{text}."
