"""Translation of an exported program's nodes to ONNX's operators."""

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, cast

import sympy
import torch
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec, TensorArgument

from tightship.errors import InputError
from tightship.frontend.body import body_of, inner_writer
from tightship.frontend.finish import finished
from tightship.frontend.torch.arithmetic import Lengths, Number, value_of
from tightship.frontend.torch.call import Call
from tightship.frontend.torch.computed import (
    Computation,
    Made,
    Ratio,
    constant_of_lengths,
    filled,
)
from tightship.frontend.torch.lengths import expression
from tightship.frontend.torch.refusal import operator_name, refused
from tightship.frontend.torch.table import CREATED, TRANSLATIONS, UNREAD, Translation
from tightship.frontend.torch.tensor import constant_of, dtype_of, has_elements
from tightship.frontend.writer import Operand, Type, Writer
from tightship.graph import AttributeValue, Constant, DType, Graph
from tightship.graph.length import is_length
from tightship.graph.symbolic import length_key

SYMBOLIC = torch.SymInt | torch.SymFloat | torch.SymBool
Result = Operand | tuple[Operand | None, ...] | Number | Ratio | None

FOLDED_ELEMENTS_MAX = 1 << 24
"""Most elements of a constant that is computed while a program is read."""

MAY_BE_TENSORS = frozenset(("self", "other", "exponent"))
"""Arguments that translations accept as numbers and as tensors."""

_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


@dataclass(slots=True)
class Translator:
    """Translation of a program to a graph.

    Attributes:
        program: Program in the operators of `table`.
        table: Translations by operator.
        name_of: Returns the name in the graph of an input, parameter or buffer.
        lengths: Open lengths, as numbers or symbolic.
        held: Cache of parameters' constants, by target.
    """

    program: torch.export.ExportedProgram
    table: Mapping[str, Translation] = field(default_factory=lambda: TRANSLATIONS)
    name_of: Callable[[str], str] = str
    lengths: Lengths = field(default_factory=dict)
    held: dict[str, Constant] = field(default_factory=dict)
    writer: Writer = field(default_factory=Writer)
    results: dict[torch.fx.Node, Result] = field(default_factory=dict)
    made: dict[torch.fx.Node, Made] = field(default_factory=dict)
    """Tensors that depend on no input or parameter, and numbers that follow from lengths."""
    folded: dict[Hashable, tuple[Made, Operand]] = field(default_factory=dict)
    """The same by their computations, so that layers share masks and positions."""
    _lengths: dict[sympy.Basic, Number] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)

    def graph(self) -> Graph:
        """Return the graph, without nodes that no output needs."""
        nodes = self.program.graph.nodes
        self._read_inputs({node.name: node for node in nodes if node.op == "placeholder"})
        self._read_nodes(self.program.graph)
        outputs = self._outputs({node.name: node for node in nodes})
        return finished(self.writer, "exported program", self.inputs, outputs)

    def _read_nodes(self, graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.op == "get_attr":
                self._read_attribute(node)
            if node.op == "call_function":
                self._read_call(node)

    def _read_inputs(self, nodes: Mapping[str, torch.fx.Node]) -> None:
        """Define the inputs first, so that they keep their names."""
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
                type_ = self._types(node)[0]
                assert type_ is not None, node
                operand = self.writer.define(name, *type_)
                self.inputs.append(operand.name)
                self.results[node] = operand
            elif node.users:
                constant = self.held.get(spec.target)
                if constant is None:
                    constant = constant_of(self._tensor(spec.target), spec.target)
                    self.held[spec.target] = constant
                self.results[node] = self.writer.constant(self.name_of(spec.target), constant)

    def _read_attribute(self, node: torch.fx.Node) -> None:
        """Define a tensor that tracing found in the code."""
        tensor = self.program.constants.get(node.target)
        if tensor is None:
            tensor = getattr(node.graph.owning_module, node.target, None)
        if isinstance(tensor, torch.fx.GraphModule):
            return  # a body, read by the operator that runs it
        if not isinstance(tensor, torch.Tensor):
            raise refused(node, "is control flow", _WITHOUT_CONTROL)
        if has_elements(tensor):
            self.made[node] = tensor
        self.results[node] = self.writer.constant(node.name, constant_of(tensor, node.name))

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
        elif name == "aten._assert_scalar.default":
            self._check_assertion(node)
        elif name.startswith(("aten._assert", "aten.sym_constrain")):
            self.results[node] = None
        elif isinstance(
            node.meta.get("val"), Number | torch.SymInt | torch.SymFloat | torch.SymBool
        ):
            self.results[node] = self.made[node] = self._number(node, node.meta["val"])
        elif node.target in CONTROL:
            self.results[node] = CONTROL[node.target](self, node)
        elif not isinstance(node.target, torch._ops.OpOverload):
            raise refused(node, "is control flow", _WITHOUT_CONTROL)
        elif not self._fold(node, name):
            self._translate(node, name)

    def _fold(self, node: torch.fx.Node, name: str) -> bool:
        """Compute what depends on no input, if it is small, such as masks and positions."""
        sources = node.all_input_nodes
        if not (sources or name in CREATED) or any(each not in self.made for each in sources):
            return False
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return False
        (type_,) = self._types(node)
        if type_ is None or prod(type_[1]) > FOLDED_ELEMENTS_MAX:
            return False
        arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), self.made.get)
        computation = Computation(node.target, arguments, keywords)
        key = type_[0], tuple(map(length_key, type_[1])), computation.recipe
        if key not in self.folded:
            self.folded[key] = self._folded(node, computation, type_)
        self.made[node], self.results[node] = self.folded[key]
        return True

    def _folded(
        self, node: torch.fx.Node, computation: Computation, type_: Type
    ) -> tuple[Made, Operand]:
        """Compute a constant of the program."""
        made: Made = computation if computation.sources else computation.tensor({})
        constant: Constant | None = filled(operator_name(node), computation, type_)
        if constant is None and isinstance(made, torch.Tensor):
            constant = constant_of(made.contiguous(), node.name)
        elif constant is None:
            constant = constant_of_lengths(computation, type_)
        return made, self.writer.constant(node.name, constant)

    def _translate(self, node: torch.fx.Node, name: str) -> None:
        translation = self.table.get(name)
        types = self._types(node)
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
        """Return the arguments by the names of the schema, defaults included."""
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
            elif isinstance(value, torch.fx.Node) and argument.name in MAY_BE_TENSORS:
                found[argument.name] = self._number_or_operand(value)
            else:
                found[argument.name] = torch.fx.node.map_arg(value, self._argument)
        return found

    def _check_assertion(self, node: torch.fx.Node) -> None:
        """Check an assertion of the program about lengths.

        Raises:
            InputError: It does not hold for these shapes.
        """
        held = node.args[0]
        if self.results.get(held, True) is False:
            raise InputError(f"The program does not admit these shapes: {node.args[1]}.")
        self.results[node] = None

    def _number(self, node: torch.fx.Node, value: object) -> Number | Ratio:
        if isinstance(value, Number):
            return value
        assert isinstance(value, SYMBOLIC), value
        found = value.node.expr
        if not found.free_symbols <= self.lengths.keys():
            raise refused(node, f"is the number `{found}`, which depends on data")
        if not isinstance(value, torch.SymFloat):
            return self._length(found)
        ratio = Ratio(found, self.lengths)
        return ratio if any(map(is_length, ratio.sources)) else ratio.now

    def _length(self, expression: sympy.Basic) -> Number:
        found = self._lengths.get(expression)
        if found is None:
            found = self._lengths[expression] = value_of(expression, self.lengths)
        return found

    def _argument(self, node: torch.fx.Node) -> Operand | Number:
        found = self.results.get(node)
        if isinstance(found, Ratio):
            return found.fixed()
        return found if isinstance(found, Number) else self._operand(node)

    def _number_or_operand(self, node: torch.fx.Node) -> Operand | Number:
        found = self.results.get(node)
        if not isinstance(found, Ratio):
            return self._argument(node)
        return self.writer.constant(node.name, constant_of_lengths(found, (DType.FLOAT64, ())))

    def _operand(self, node: torch.fx.Node) -> Operand:
        operand = self.results.get(node)
        if operand is None and node.target is operator.getitem:
            source, index = node.args
            raise refused(node, f"is result {index} of `{source.name}`, which is not computed")
        if not isinstance(operand, Operand):
            raise refused(node, "is not a tensor", _WITHOUT_CONTROL)
        return operand

    def _types(self, node: torch.fx.Node) -> tuple[Type | None, ...]:
        """Return the types of a node's results; None for those that are not tensors.

        Raises:
            GraphError: A shape depends on data.
        """
        value = node.meta.get("val")
        results: Iterable[object] = value if isinstance(value, list | tuple) else (value,)
        return tuple(
            self._type(node, each) if isinstance(each, torch.Tensor) else None for each in results
        )

    def _type(self, node: torch.fx.Node, tensor: torch.Tensor) -> Type:
        lengths = [expression(length) for length in tensor.shape]
        if not all(length.free_symbols <= self.lengths.keys() for length in lengths):
            raise refused(node, f"has the shape {lengths}, which depends on data")
        owner = f"Node `{node.name}` ({operator_name(node)})"
        shape = cast("list[int]", [self._length(length) for length in lengths])
        return dtype_of(tensor.dtype, owner), tuple(shape)

    def _outputs(self, nodes: Mapping[str, torch.fx.Node]) -> list[tuple[str, Operand]]:
        """Return names and values of the program's outputs, then of what it changes."""
        specs = self.program.graph_signature.output_specs
        found: list[tuple[str, Operand]] = []
        for spec in sorted(specs, key=lambda spec: spec.kind in _MUTATIONS):
            if isinstance(spec.arg, TensorArgument):
                node = nodes[spec.arg.name]
                operand = self._operand(node)
                found.append((self._called(spec, node, operand), operand))
        return found

    def _called(self, spec: OutputSpec, node: torch.fx.Node, operand: Operand) -> str:
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

    def _inner(self) -> "Translator":
        """Return a translator of a body, which can read outer values."""
        writer = inner_writer(self.writer)
        return replace(self, writer=writer, results={}, made={}, folded={}, inputs=[])

    def _run(self, body: torch.fx.Node, given: Sequence[Operand]) -> list[Operand]:
        """Write the nodes of a graph that a node names; return its results."""
        graph = getattr(body.graph.owning_module, str(body.target)).graph
        self.results.update(zip(graph.find_nodes(op="placeholder"), given, strict=True))
        self._read_nodes(graph)
        (results,) = graph.output_node().args
        return self._tensors([results] if isinstance(results, torch.fx.Node) else results)

    def _tensors(self, nodes: Any) -> list[Operand]:  # noqa: ANN401
        return [self._operand(each) for each in nodes]

    def _written(
        self,
        node: torch.fx.Node,
        operator: str,
        inputs: Sequence[Operand | None],
        attributes: Mapping[str, AttributeValue],
    ) -> tuple[Operand, ...]:
        types = self._types(node)
        outputs = tuple([self.writer.define(node.name, *type_) for type_ in types if type_])
        self.writer.node(operator, inputs, outputs, attributes)
        return outputs

    def _choose(self, node: torch.fx.Node) -> tuple[Operand, ...]:
        """Translate `torch.cond` to an If."""
        condition, then_branch, else_branch, operands = node.args
        given, bodies = self._tensors(operands), {}
        for name, branch in (("then_branch", then_branch), ("else_branch", else_branch)):
            inner = self._inner()
            bodies[name] = body_of(inner.writer, self.writer, (), inner._run(branch, given))
        return self._written(node, "If", (self._operand(condition),), bodies)

    def _scan(self, node: torch.fx.Node) -> tuple[Operand, ...]:
        """Translate `scan`, or `map`, which has no carry, to a Scan along the first axis."""
        combine, *starts, wholes, more = node.args
        carry = [self._operand(each) for given in starts for each in given]
        rows, inner = self._tensors(wholes), self._inner()
        states = [inner.writer.define("carry", each.dtype, each.shape) for each in carry]
        slices = [inner.writer.define("row", each.dtype, each.shape[1:]) for each in rows]
        results = inner._run(combine, [*states, *slices, *self._tensors(more)])
        body = body_of(inner.writer, self.writer, [*states, *slices], results)
        attributes: dict[str, AttributeValue] = {"body": body, "num_scan_inputs": len(rows)}
        return self._written(node, "Scan", [*carry, *rows], attributes)

    def _loop(self, node: torch.fx.Node) -> tuple[Operand, ...]:
        """Translate `while_loop` to a Loop."""
        ends, iteration, starts, more = node.args
        carry, fixed, inner = self._tensors(starts), self._tensors(more), self._inner()
        (begins,) = self._run(ends, [*carry, *fixed])
        number = inner.writer.define("iteration", DType.INT64, ())
        goes_on = inner.writer.define("goes_on", DType.BOOL, ())
        states = [inner.writer.define("carry", each.dtype, each.shape) for each in carry]
        results = inner._run(iteration, [*states, *fixed])
        (again,) = inner._run(ends, [*results, *fixed])
        body = body_of(inner.writer, self.writer, [number, goes_on, *states], [again, *results])
        return self._written(node, "Loop", [None, begins, *carry], {"body": body})


CONTROL = {
    torch.ops.higher_order.cond: Translator._choose,
    torch.ops.higher_order.map_impl: Translator._scan,
    torch.ops.higher_order.scan: Translator._scan,
    torch.ops.higher_order.while_loop: Translator._loop,
}
"""Operators that run graphs."""

_WITHOUT_CONTROL = (
    "export a program whose steps and shapes do not depend on data, such as one for each case"
)
