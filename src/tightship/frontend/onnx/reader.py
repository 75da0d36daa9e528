"""A parsed model as a graph: names checked, functions inlined, every value typed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.attributes import read_attributes
from tightship.frontend.onnx.constant_node import constant_value
from tightship.frontend.onnx.control import Body, ControlNode, type_control
from tightship.frontend.onnx.functions import Functions, Origin
from tightship.frontend.onnx.infer import infer
from tightship.frontend.onnx.propagate import propagate
from tightship.frontend.onnx.schema import Schemas, label, normal_domain
from tightship.frontend.onnx.scope import Scope
from tightship.frontend.onnx.tensor import Tensors
from tightship.graph import AttributeValue, Constant, Graph, Node

BindInputs = Callable[[Mapping[str, TypeProto]], tuple[dict[str, TypeProto], dict[str, int]]]
"""From declared input types to types, and to the numbers that symbols stand for."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What all graphs of one model share."""

    tensors: Tensors
    functions: Functions
    ir_version: int
    schemas: Schemas = field(default_factory=Schemas)
    symbols: dict[str, int] = field(default_factory=dict)

    def model_graph(self, proto: GraphProto, origin: Origin, bind: BindInputs) -> Graph:
        """The main graph; initializers that are also inputs are constants.

        Raises:
            FormatError: A tensor's bytes do not fit.
            GraphError: The graph is not valid, or cannot be typed.
            InputError: The shapes given do not fit the inputs.
        """
        initialized = {tensor.name for tensor in proto.initializer}
        initialized.update(sparse.values.name for sparse in proto.sparse_initializer)
        declared = {
            value.name: value.type for value in proto.input if value.name not in initialized
        }
        if len(declared) + len(initialized & {v.name for v in proto.input}) != len(proto.input):
            raise GraphError(f"Graph `{proto.name}` has two inputs of the same name.")
        inputs, symbols = bind(declared)
        self.symbols.update(symbols)
        return _GraphReader(self, proto, Scope(), origin, 0).read(inputs).graph


@dataclass(slots=True)
class _GraphReader:
    """Reads one graph, node by node."""

    reader: Reader
    proto: GraphProto
    scope: Scope
    origin: Origin
    depth: int
    declared: dict[str, TypeProto] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    known: dict[str, Constant] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    node_names: set[str] = field(default_factory=set)

    def read(self, inputs: Mapping[str, TypeProto]) -> Body:
        """The graph for these input types, and the types of its outputs."""
        owner = f"Graph `{self.proto.name}`"
        for name, type_ in inputs.items():
            self.scope.define(name, type_, owner)
        for value in (*self.proto.value_info, *self.proto.output):
            self.declared[value.name] = types.bind(value.type, self.reader.symbols)
        self._read_initializers(owner)
        for node, origin in self.reader.functions.expand(self.proto.node, self.origin):
            self._read_node(node, origin)
        outputs = tuple(value.name for value in self.proto.output)
        if len(set(outputs)) != len(outputs):
            raise GraphError(f"{owner} has two outputs of the same name.")
        output_types = tuple(self.scope.type_of(name, owner) for name in outputs)
        found = {name: self.scope.type_of(name, owner) for name in self.scope.captures}
        found.update(self.scope.types)
        graph = Graph(
            name=self.proto.name,
            inputs=tuple(inputs),
            outputs=outputs,
            values={name: types.value_of(name, type_) for name, type_ in found.items()},
            nodes=tuple(self.nodes),
            constants=self.constants,
            known=self.known,
            captures=tuple(self.scope.captures),
        )
        return Body(graph, output_types)

    def _read_initializers(self, owner: str) -> None:
        tensors = self.reader.tensors
        for tensor in self.proto.initializer:
            self._add_constant(tensor.name, tensors.constant(tensor, tensor.name), owner)
        for sparse in self.proto.sparse_initializer:
            name = sparse.values.name
            self._add_constant(name, tensors.sparse(sparse, name), owner)

    def _add_constant(self, name: str, constant: Constant, owner: str) -> None:
        self.scope.define(name, types.tensor_type(constant.dtype, constant.shape), owner)
        self.scope.constants[name] = self.constants[name] = constant

    def _read_node(self, proto: NodeProto, origin: Origin) -> None:
        domain = normal_domain(proto.domain)
        schema = self.reader.schemas.find(proto, domain, origin.opsets)
        attributes, graphs = read_attributes(proto, self.reader.tensors)
        if proto.op_type == "Constant" and not domain:
            constant = constant_value(proto, attributes)
            self._add_constant(proto.output[0], constant, f"Node {label(proto)}")
            return
        version = origin.opsets.versions[domain]
        if graphs:
            inferred, subgraphs = self._type_control(proto, attributes, graphs, origin)
            attributes.update(subgraphs)
        else:
            inferred = infer(proto, schema, self.scope, origin.opsets, self.reader.ir_version)
        node = Node(
            name=self._unique_name(proto),
            operator=proto.op_type,
            inputs=tuple(proto.input),
            outputs=tuple(proto.output),
            attributes=attributes,
            domain=domain,
            version=version,
        )
        self._define_outputs(node, inferred)
        self.nodes.append(node)

    def _type_control(
        self,
        proto: NodeProto,
        attributes: Mapping[str, AttributeValue],
        graphs: Mapping[str, GraphProto],
        origin: Origin,
    ) -> tuple[Sequence[TypeProto], Mapping[str, Graph]]:
        def read_body(graph: GraphProto, inputs: Sequence[TypeProto] | None) -> Body:
            scope = Scope(self.scope)
            inner = _GraphReader(self.reader, graph, scope, origin, self.depth + 1)
            given = [None] * len(graph.input) if inputs is None else inputs
            bound = {
                value.name: _body_input(value.type, type_)
                for value, type_ in zip(graph.input, given, strict=True)
            }
            if len(bound) != len(graph.input):
                raise GraphError(f"Graph `{graph.name}` has two inputs of the same name.")
            return inner.read(bound)

        for name in proto.input:
            if name:
                self.scope.type_of(name, f"Node {label(proto)}")
        version = origin.opsets.versions[normal_domain(proto.domain)]
        control = ControlNode(proto, attributes, graphs, self.scope, read_body, version, self.depth)
        subgraphs, inferred = type_control(control)
        return inferred, subgraphs

    def _define_outputs(self, node: Node, inferred: Sequence[TypeProto]) -> None:
        owner = f"Node `{node.name}` ({node.operator})"
        found = propagate(node, self.scope, inferred)
        for index, name in enumerate(node.outputs):
            if not name:
                continue
            type_ = inferred[index]
            declared = self.declared.get(name)
            if declared is not None:
                type_ = _checked(owner, name, type_, declared)
            if found is not None:
                constant = found[index]
                type_ = types.tensor_type(constant.dtype, constant.shape)
                self.scope.constants[name] = self.known[name] = constant
            self.scope.define(name, type_, owner)

    def _unique_name(self, proto: NodeProto) -> str:
        first = next((output for output in proto.output if output), "")
        name = proto.name or f"{proto.op_type}_{first}"
        count = 1
        while name in self.node_names:
            count += 1
            name = f"{proto.op_type}_{first}" + (f"_{count}" if count > 2 else "")
        self.node_names.add(name)
        return name


def _body_input(declared: TypeProto, given: TypeProto | None) -> TypeProto:
    if given is None or not types.is_known(given):
        return declared
    return given


def _checked(owner: str, name: str, inferred: TypeProto, declared: TypeProto) -> TypeProto:
    """What was inferred, completed by the declared type of the same element type."""
    if types.is_tensor(inferred) and types.is_tensor(declared):
        numbers = inferred.tensor_type.elem_type, declared.tensor_type.elem_type
        if numbers[0] != numbers[1]:
            raise GraphError(
                f"{owner} gives `{name}` the element type {types.element_name(numbers[0])}, but "
                f"the model declares {types.element_name(numbers[1])}."
            )
    return types.refine(inferred, declared)
