"""Conversion of a parsed model to a graph: names checked, functions inlined, values typed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.attributes import read_attributes
from tightship.frontend.onnx.constant_node import constant_value
from tightship.frontend.onnx.contrib import OPSETS, spelled
from tightship.frontend.onnx.contrib.pattern import Around
from tightship.frontend.onnx.control import Body, ControlNode, ReadBody, type_control
from tightship.frontend.onnx.functions import Functions, Origin
from tightship.frontend.onnx.in_order import in_order
from tightship.frontend.onnx.infer import Inference, InferenceCall, UntypedError
from tightship.frontend.onnx.propagate import evaluate, foresee
from tightship.frontend.onnx.schema import Schemas, label, normal_domain
from tightship.frontend.onnx.scope import Scope
from tightship.frontend.onnx.tensor import Tensors
from tightship.frontend.onnx.text import utf8
from tightship.graph import Constant, Graph, Node
from tightship.graph.consumed import consumed

BindInputs = Callable[[Mapping[str, TypeProto]], tuple[dict[str, TypeProto], dict[str, int]]]
"""Binds declared input types; returns the types, and the numbers of symbols."""


@dataclass(frozen=True, slots=True)
class Reader:
    """State common to all graphs of a model."""

    tensors: Tensors
    functions: Functions
    inference: Inference
    schemas: Schemas = field(default_factory=Schemas)
    symbols: dict[str, int] = field(default_factory=dict)

    def model_graph(self, proto: GraphProto, origin: Origin, bind: BindInputs) -> Graph:
        """Return the main graph; initializers that are also inputs are constants.

        Raises:
            FormatError: A tensor's bytes do not fit.
            GraphError: The graph is not valid, or cannot be typed.
            InputError: The given shapes do not fit the inputs.
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
        inputs = {name: self.inference.shared(type_) for name, type_ in inputs.items()}
        try:
            return _GraphReader(self, proto, Scope(), origin, 0).read(inputs).graph
        except UntypedError as error:
            raise GraphError(str(error)) from None


@dataclass(slots=True)
class _GraphReader:
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
        """Return the graph for these input types, and the types of its outputs."""
        owner = f"Graph `{self.proto.name}`"
        for name, type_ in inputs.items():
            self.scope.define(name, type_, owner)
        self.declared.update({value.name: value.type for value in self.proto.value_info})
        self.declared.update({value.name: value.type for value in self.proto.output})
        self._read_initializers(owner)
        for node, origin in self.reader.functions.expand(in_order(self.proto.node), self.origin):
            self._read_contributed(node, origin)
        outputs = tuple(value.name for value in self.proto.output)
        if len(set(outputs)) != len(outputs):
            raise GraphError(f"{owner} has two outputs of the same name.")
        output_types = tuple(self.scope.type_of(name, owner) for name in outputs)
        found = {name: self.scope.type_of(name, owner) for name in self.scope.captures}
        found.update(self.scope.types)
        graph = Graph(
            name=utf8(self.proto.name, "graph name"),
            inputs=tuple(inputs),
            outputs=outputs,
            values=types.values_of(found),
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

    def _add_constant(self, written: str, constant: Constant, owner: str) -> None:
        name = utf8(written, "name")
        self.scope.define(name, types.constant_type(constant.dtype, constant.shape), owner)
        self.scope.constants[name] = self.constants[name] = constant

    def _read_contributed(self, proto: NodeProto, origin: Origin) -> None:
        """Read a node, or the decomposition of an operator that ONNX Runtime adds to ONNX."""
        owner = f"Node {label(proto)}"
        around = Around(
            lambda name: self.scope.type_of(name, owner),
            lambda name: self.scope.constant_of(name) is not None,
            self.declared,
        )
        nodes = spelled(proto, origin.opsets, around)
        if nodes is None:
            self._read_node(proto, origin)
            return
        written = Origin(OPSETS, origin.depth + 1)
        for node, type_ in nodes:
            if type_ is None:
                self._read_node(node, written)
            else:
                self._read_own(node, type_)

    def _read_own(self, proto: NodeProto, type_: TypeProto) -> None:
        """Read a node of an operator of our own, with the type of its only output."""
        attributes, _ = read_attributes(proto, self.reader.tensors)
        names = tuple(proto.input), tuple(proto.output)
        node = Node(self._unique_name(proto), proto.op_type, *names, attributes, proto.domain)
        self._define_outputs(node, [self.reader.inference.shared(type_)], f"Node {label(proto)}")
        self.nodes.append(node)

    def _read_node(self, proto: NodeProto, origin: Origin) -> None:
        domain = normal_domain(proto.domain)
        schema = self.reader.schemas.find(proto, domain, origin.opsets)
        attributes, graphs = read_attributes(proto, self.reader.tensors)
        owner = f"Node {label(proto)}"
        row = None if domain else consumed(proto.op_type)
        element = 0
        if row and row.only and proto.input:
            element = self.scope.type_of(proto.input[0], owner).tensor_type.elem_type
        refusal = row and row.refusal(proto.input, attributes | graphs, element)
        if refusal:
            raise GraphError(f"{owner} has {refusal}. Export the model without it.")
        if proto.op_type == "Constant" and not domain:
            constant = constant_value(proto, attributes)
            self._add_constant(proto.output[0], constant, owner)
            return
        inputs = {name: self.scope.type_of(name, owner) for name in proto.input if name}
        version = origin.opsets.versions[domain]
        inferred: Sequence[TypeProto] = ()
        if graphs:
            read_body = self._body_reader(origin)
            control = ControlNode(
                proto, attributes, graphs, self.scope, read_body, version, self.depth
            )
            subgraphs, inferred = type_control(control)
            attributes.update(subgraphs)
        node = Node(
            name=self._unique_name(proto),
            operator=utf8(proto.op_type, "operator"),
            inputs=tuple([utf8(name, "name") for name in proto.input]),
            outputs=tuple([utf8(name, "name") for name in proto.output]),
            attributes=attributes,
            domain=domain,
            version=version,
        )
        found = foresee(node, self.scope)
        if found is None and not graphs:
            data = self.scope.shape_data_of(inputs)
            call = InferenceCall(proto, schema, inputs, data, owner)
            inferred = self.reader.inference.outputs(call, origin.opsets)
            found = evaluate(node, self.scope, inferred)
        if found is None:
            self._define_outputs(node, inferred, owner)
        else:
            self._define_known(node, found, owner)
        self.nodes.append(node)

    def _body_reader(self, origin: Origin) -> ReadBody:
        def read_body(graph: GraphProto, inputs: Sequence[TypeProto] | None) -> Body:
            scope = Scope(self.scope)
            inner = _GraphReader(self.reader, graph, scope, origin, self.depth + 1)
            given = [TypeProto()] * len(graph.input) if inputs is None else inputs
            bound = {
                value.name: type_ if types.is_known(type_) else types.bind(value.type, {})
                for value, type_ in zip(graph.input, given, strict=True)
            }
            if len(bound) != len(graph.input):
                raise GraphError(f"Graph `{graph.name}` has two inputs of the same name.")
            return inner.read(bound)

        return read_body

    def _define_outputs(self, node: Node, inferred: Sequence[TypeProto], owner: str) -> None:
        for name, type_ in zip(node.outputs, inferred, strict=False):
            if name:
                self.scope.define(name, self._checked(owner, name, type_), owner)

    def _define_known(self, node: Node, found: Sequence[Constant], owner: str) -> None:
        for name, constant in zip(node.outputs, found, strict=True):
            type_ = types.constant_type(constant.dtype, constant.shape)
            if name:
                self._checked(owner, name, type_)
                self.scope.define(name, type_, owner)
                self.scope.constants[name] = self.known[name] = constant

    def _unique_name(self, proto: NodeProto) -> str:
        first = next((output for output in proto.output if output), "")
        name = utf8(proto.name, "node name") or f"{proto.op_type}_{first}"
        count = len(self.nodes)
        while name in self.node_names:
            name = f"{proto.op_type}_{first}_{count}"
            count += 1
        self.node_names.add(name)
        return name

    def _checked(self, owner: str, name: str, inferred: TypeProto) -> TypeProto:
        """Complete an inferred type by the declared one, and check that element types agree."""
        declared = self.declared.get(name)
        if declared is None or declared == inferred:
            return inferred
        if types.is_tensor(inferred) and types.is_tensor(declared):
            numbers = inferred.tensor_type.elem_type, declared.tensor_type.elem_type
            if numbers[0] != numbers[1]:
                raise GraphError(
                    f"{owner} gives `{name}` the element type {types.element_name(numbers[0])}, "
                    f"but the model declares {types.element_name(numbers[1])}."
                )
        return types.refine(inferred, types.bind(declared, self.reader.symbols))
