"""The nodes of an exported program, one after another, written as ONNX's operators."""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from tightship.errors import InputError
from tightship.frontend.torch.decompose import decomposed
from tightship.frontend.torch.refusal import operator_name, refused
from tightship.frontend.torch.table import CREATED, TRANSLATIONS
from tightship.frontend.torch.tensor import constant_of, dtype_of
from tightship.frontend.torch.writer import Call, Operand, Type, Writer
from tightship.graph import Graph

Result = Operand | tuple[Operand | None, ...] | None

FOLDED_ELEMENTS_MAX = 1 << 24
"""Elements of a constant that is computed while a program is read."""

_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def translated(program: torch.export.ExportedProgram) -> Graph:
    """The program as a graph.

    Raises:
        GraphError, InputError: As `frontend.torch.read`.
    """
    _refuse_open_lengths(program)
    return _Translator(decomposed(program)).graph()


@dataclass(slots=True)
class _Translator:
    program: torch.export.ExportedProgram
    writer: Writer = field(default_factory=Writer)
    results: dict[torch.fx.Node, Result] = field(default_factory=dict)
    made: dict[torch.fx.Node, torch.Tensor] = field(default_factory=dict)
    """Tensors that depend on no input or parameter."""
    inputs: list[str] = field(default_factory=list)

    def graph(self) -> Graph:
        nodes = self.program.graph.nodes
        self._read_inputs({node.name: node for node in nodes if node.op == "placeholder"})
        for node in nodes:
            if node.op == "get_attr":
                raise refused(node, "is control flow", _WITHOUT_CONTROL)
            if node.op == "call_function":
                self._read_call(node)
        outputs = self._outputs({node.name: node for node in nodes})
        read = {name for node in self.writer.nodes for name in node.reads} | set(outputs)
        constants = {name: c for name, c in self.writer.constants.items() if name in read}
        return Graph(
            name="exported program",
            inputs=tuple(self.inputs),
            outputs=outputs,
            values=self.writer.values,
            nodes=tuple(self.writer.nodes),
            constants=constants,
        )

    def _read_inputs(self, nodes: Mapping[str, torch.fx.Node]) -> None:
        """Inputs first, so that they have the names of the program."""
        signature = self.program.graph_signature
        changed = set(signature.buffers_to_mutate.values())
        specs = sorted(signature.input_specs, key=lambda s: s.kind is not InputKind.USER_INPUT)
        for spec in specs:
            if not isinstance(spec.arg, TensorArgument):
                continue
            node = nodes[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT or spec.target in changed:
                name = spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target
                type_ = _types(node)[0]
                assert type_ is not None, node
                operand = self.writer.define(name, *type_)
                self.inputs.append(operand.name)
                self.results[node] = operand
            else:
                tensor = self._tensor(spec.target)
                self.results[node] = self.writer.constant(
                    spec.target, constant_of(tensor, spec.target)
                )

    def _tensor(self, target: str) -> torch.Tensor:
        held: torch.Tensor | None = self.program.state_dict.get(target)
        return self.program.constants[target] if held is None else held

    def _read_call(self, node: torch.fx.Node) -> None:
        name = operator_name(node)
        if node.target is operator.getitem:
            source, index = node.args
            found = self.results[source]
            assert isinstance(found, tuple), node
            if found[index] is None and node.users:
                raise refused(node, f"is result {index} of `{source.name}`, which is not given")
            self.results[node] = found[index]
        elif name.startswith(("aten._assert", "aten.sym_constrain")):
            self.results[node] = None
        elif not isinstance(node.target, torch._ops.OpOverload):
            raise refused(node, "is control flow or computes with lengths", _WITHOUT_CONTROL)
        elif not self._fold(node, name):
            self._translate(node, name)

    def _fold(self, node: torch.fx.Node, name: str) -> bool:
        """Compute what depends on no input; small, as masks and positions are."""
        sources = node.all_input_nodes
        if not (sources or name in CREATED) or any(each not in self.made for each in sources):
            return False
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.numel() > FOLDED_ELEMENTS_MAX:
            return False
        arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), self.made.get)
        with torch.no_grad():
            tensor = node.target(*arguments, **keywords).contiguous()
        self.made[node] = tensor
        self.results[node] = self.writer.constant(node.name, constant_of(tensor, node.name))
        return True

    def _translate(self, node: torch.fx.Node, name: str) -> None:
        translation = TRANSLATIONS.get(name)
        types = _types(node)
        if translation is None:
            raise refused(node, "has no translation into ONNX's operators")
        result = translation(Call(self.writer, node, self._arguments(node), types))
        results = result if isinstance(result, tuple) else (result,)
        for operand, type_ in zip(results, types, strict=False):
            assert operand is None or (operand.dtype, operand.shape) == type_, (name, operand)
        self.results[node] = result

    def _arguments(self, node: torch.fx.Node) -> dict[str, Any]:
        """Arguments by the names of the schema, defaults included."""
        given = dict(node.kwargs)
        found: dict[str, Any] = {}
        for index, argument in enumerate(node.target._schema.arguments):
            if index < len(node.args):
                value = node.args[index]
            else:
                value = given.get(argument.name, argument.default_value)
            found[argument.name] = torch.fx.node.map_arg(value, self._operand)
        return found

    def _operand(self, node: torch.fx.Node) -> Operand:
        operand = self.results.get(node)
        if not isinstance(operand, Operand):
            raise refused(node, "is no tensor", _WITHOUT_CONTROL)
        return operand

    def _outputs(self, nodes: Mapping[str, torch.fx.Node]) -> tuple[str, ...]:
        """The program's own, then what becomes of what it changes; each a value of its own."""
        specs = self.program.graph_signature.output_specs
        names: list[str] = []
        for spec in sorted(specs, key=lambda spec: spec.kind in _MUTATIONS):
            if not isinstance(spec.arg, TensorArgument):
                continue
            node = nodes[spec.arg.name]
            operand = self._operand(node)
            stem = operand.name
            if spec.kind in _MUTATIONS:
                stem = f"{spec.target}.updated"
            elif spec.kind is not OutputKind.USER_OUTPUT:
                raise refused(node, f"is an output of the kind {spec.kind.name.lower()}")
            taken = {*names, *self.inputs, *self.writer.constants}
            if stem != operand.name or operand.name in taken:
                output = self.writer.define(stem, operand.dtype, operand.shape)
                self.writer.node("Identity", (operand,), (output,), {})
                operand = output
            names.append(operand.name)
        return tuple(names)


_WITHOUT_CONTROL = (
    "export a program whose steps and shapes do not depend on data, such as one for each case"
)


def _types(node: torch.fx.Node) -> tuple[Type | None, ...]:
    """Types of a node's results; None of those that are no tensors.

    Raises:
        GraphError: A shape depends on data.
    """
    value = node.meta.get("val")
    results: Iterable[object] = value if isinstance(value, list | tuple) else (value,)
    return tuple(_type(node, each) if isinstance(each, torch.Tensor) else None for each in results)


def _type(node: torch.fx.Node, tensor: torch.Tensor) -> Type:
    if not all(isinstance(length, int) for length in tensor.shape):
        raise refused(node, f"has the shape {list(tensor.shape)}, which depends on data")
    return dtype_of(tensor.dtype, f"Node `{node.name}` ({operator_name(node)})"), (*tensor.shape,)


def _refuse_open_lengths(program: torch.export.ExportedProgram) -> None:
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        if isinstance(value, torch.Tensor) and not all(isinstance(d, int) for d in value.shape):
            raise InputError(
                f"Input `{node.name}` has the shape {[str(d) for d in value.shape]}, in which a "
                "length is open; export the model without `dynamic_shapes`, once for each shape."
            )
        if isinstance(value, torch.SymInt):
            raise InputError(
                f"Input `{node.name}` is an open number; export the model without `dynamic_shapes`."
            )
