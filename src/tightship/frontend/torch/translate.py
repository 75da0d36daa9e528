"""The nodes of an exported program, one after another, written as ONNX's operators."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec, TensorArgument

from tightship.errors import InputError
from tightship.frontend.finish import finished
from tightship.frontend.torch.call import Call
from tightship.frontend.torch.decompose import decomposed
from tightship.frontend.torch.refusal import operator_name, refused
from tightship.frontend.torch.table import CREATED, OF_ONE_NUMBER, TRANSLATIONS, UNREAD, Translation
from tightship.frontend.torch.tensor import constant_of, dtype_of
from tightship.frontend.writer import Operand, Type, Writer
from tightship.graph import Fill, Graph

Result = Operand | tuple[Operand | None, ...] | None

FOLDED_ELEMENTS_MAX = 1 << 24
"""Elements of a constant that is computed while a program is read."""

_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


def translated(program: torch.export.ExportedProgram) -> Graph:
    """The program as a graph.

    Raises:
        GraphError, InputError: As `frontend.torch.read`.
    """
    _refuse_open_lengths(program)
    return Translator(decomposed(program)).graph()


@dataclass(slots=True)
class Translator:
    """A program being written as a graph.

    Attributes:
        program: In the operators of `table`.
        table: Translations by operator.
        name_of: What an input, a parameter or a buffer is called in the graph.
    """

    program: torch.export.ExportedProgram
    table: Mapping[str, Translation] = field(default_factory=lambda: TRANSLATIONS)
    name_of: Callable[[str], str] = str
    writer: Writer = field(default_factory=Writer)
    results: dict[torch.fx.Node, Result] = field(default_factory=dict)
    made: dict[torch.fx.Node, torch.Tensor] = field(default_factory=dict)
    """Tensors that depend on no input or parameter."""
    inputs: list[str] = field(default_factory=list)

    def graph(self) -> Graph:
        """The graph, without nodes that lead to no output."""
        nodes = self.program.graph.nodes
        self._read_inputs({node.name: node for node in nodes if node.op == "placeholder"})
        for node in nodes:
            if node.op == "get_attr":
                raise refused(node, "is control flow", _WITHOUT_CONTROL)
            if node.op == "call_function":
                self._read_call(node)
        outputs = self._outputs({node.name: node for node in nodes})
        return finished(self.writer, "exported program", self.inputs, outputs)

    def _read_inputs(self, nodes: Mapping[str, torch.fx.Node]) -> None:
        """Inputs first, so that they have the names of the program."""
        signature = self.program.graph_signature
        kinds = (OutputKind.BUFFER_MUTATION, OutputKind.GRADIENT_TO_PARAMETER)
        given = {each.target for each in signature.output_specs if each.kind in kinds}
        specs = sorted(signature.input_specs, key=lambda s: s.kind is not InputKind.USER_INPUT)
        for spec in specs:
            if not isinstance(spec.arg, TensorArgument):
                continue
            node = nodes[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT or spec.target in given:
                of_user = spec.kind is InputKind.USER_INPUT
                name = self.name_of(spec.arg.name if of_user else spec.target)
                type_ = _types(node)[0]
                assert type_ is not None, node
                operand = self.writer.define(name, *type_)
                self.inputs.append(operand.name)
                self.results[node] = operand
            elif node.users:
                tensor = self._tensor(spec.target)
                self.results[node] = self.writer.constant(
                    self.name_of(spec.target), constant_of(tensor, spec.target)
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
            tensor = node.target(*arguments, **keywords)
        self.made[node] = tensor
        constant = constant_of(tensor.contiguous(), node.name)
        if name in OF_ONE_NUMBER and tensor.numel() > 1:
            constant = Fill(np.array(constant.array().reshape(-1)[0]), constant.shape)
        self.results[node] = self.writer.constant(node.name, constant)
        return True

    def _translate(self, node: torch.fx.Node, name: str) -> None:
        translation = self.table.get(name)
        types = _types(node)
        if translation is None:
            raise refused(node, "has no translation into ONNX's operators")
        result = translation(Call(self.writer, node.name, types, node, self._arguments(node)))
        results = result if isinstance(result, tuple) else (result,)
        for operand, type_ in zip(results, types, strict=False):
            assert operand is None or (operand.dtype, operand.shape) == type_, (
                name,
                operand,
                type_,
            )
        self.results[node] = result

    def _arguments(self, node: torch.fx.Node) -> dict[str, Any]:
        """Arguments by the names of the schema, defaults included."""
        given = dict(node.kwargs)
        unread = UNREAD.get(operator_name(node), ())
        found: dict[str, Any] = {}
        for index, argument in enumerate(node.target._schema.arguments):
            if index < len(node.args):
                value = node.args[index]
            else:
                value = given.get(argument.name, argument.default_value)
            if argument.name in unread:
                found[argument.name] = self.results.get(value)
            else:
                found[argument.name] = torch.fx.node.map_arg(value, self._operand)
        return found

    def _operand(self, node: torch.fx.Node) -> Operand:
        operand = self.results.get(node)
        if operand is None and node.target is operator.getitem:
            source, index = node.args
            raise refused(node, f"is result {index} of `{source.name}`, which is not given")
        if not isinstance(operand, Operand):
            raise refused(node, "is no tensor", _WITHOUT_CONTROL)
        return operand

    def _outputs(self, nodes: Mapping[str, torch.fx.Node]) -> list[tuple[str, Operand]]:
        """The program's own, then what becomes of what it changes, and what they are called."""
        specs = self.program.graph_signature.output_specs
        found: list[tuple[str, Operand]] = []
        for spec in sorted(specs, key=lambda spec: spec.kind in _MUTATIONS):
            if isinstance(spec.arg, TensorArgument):
                node = nodes[spec.arg.name]
                operand = self._operand(node)
                found.append((self._called(spec, node, operand), operand))
        return found

    def _called(self, spec: OutputSpec, node: torch.fx.Node, operand: Operand) -> str:
        """The name of an output."""
        name = self.name_of(spec.target or "")
        if spec.kind in _MUTATIONS:
            return f"{name}.updated"
        if spec.kind in _GRADIENTS:
            return f"d({name})"
        if spec.kind is OutputKind.LOSS_OUTPUT:
            return "loss"
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise refused(node, f"is an output of the kind {spec.kind.name.lower()}")
        return operand.name


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
