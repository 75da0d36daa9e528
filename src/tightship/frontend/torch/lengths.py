"""Lengths that an exported program leaves open: names, bounds and conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy
import torch
from torch.export.graph_signature import InputKind, TensorArgument

from tightship.errors import InputError
from tightship.frontend.torch.arithmetic import Lengths, value_of


@dataclass(frozen=True, slots=True)
class OpenLengths:
    """Open lengths of a program's inputs.

    Attributes:
        inputs: Shapes, each length a number or an expression of symbols.
        names: Names of symbols in `dynamic_shapes`, or torch's.
        ranges: Least and largest value of expressions.
        conditions: Relations that held at the export and must hold for every shape.
    """

    inputs: Mapping[str, tuple[sympy.Expr, ...]]
    names: Mapping[sympy.Symbol, sympy.Symbol]
    ranges: Mapping[sympy.Expr, tuple[sympy.Expr, sympy.Expr]]
    conditions: Sequence[sympy.Basic]

    @staticmethod
    def of(program: torch.export.ExportedProgram) -> "OpenLengths":
        """Return the open lengths of a program; no symbols if all lengths are fixed."""
        nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
        names: dict[sympy.Symbol, sympy.Symbol] = {}
        conditions: list[sympy.Basic] = []
        inputs: dict[str, tuple[sympy.Expr, ...]] = {}
        for spec in program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT or not isinstance(spec.arg, TensorArgument):
                continue
            shape = nodes[spec.arg.name].meta["val"].shape
            inputs[spec.arg.name] = tuple(expression(length) for length in shape)
            for length in shape:
                if isinstance(length, torch.SymInt) and not conditions:
                    environment = length.node.shape_env
                    names = _names(environment)
                    conditions = [guard.expr for guard in environment.guards]
        ranges = {
            symbol: (limits.lower, limits.upper)
            for symbol, limits in program.range_constraints.items()
        }
        return OpenLengths(inputs, names, ranges, conditions)

    @property
    def is_any(self) -> bool:
        """Whether any length is open."""
        return any(length.free_symbols for shape in self.inputs.values() for length in shape)

    def shown(self, expression: sympy.Basic) -> str:
        """Return an expression with the names of its symbols."""
        return str(expression.subs(self.names))

    def declared(self, name: str) -> tuple[int | str, ...]:
        """Return the shape of an input."""
        return tuple(
            self.shown(length) if length.free_symbols else int(length)
            for length in self.inputs[name]
        )

    def bound(self, shapes: Mapping[str, Sequence[int]]) -> Lengths:
        """Return the value of every symbol.

        Raises:
            InputError: A shape is of an unknown input, has another rank, or does not fit the
                exported program; or a length stays open.
        """
        found: dict[sympy.Symbol, int] = {}
        for name, shape in shapes.items():
            self._check_rank(name, shape)
            for length, given in zip(self.inputs[name], shape, strict=True):
                self._solve(length, given, found)
                if _value(length, found) != given:
                    raise InputError(
                        f"Input `{name}` has the shape {list(self.declared(name))}, but "
                        f"{list(shape)} was given, where `{self.shown(length)}` cannot be {given}."
                    )
        self._check_all_bound(found)
        self._check_conditions(found)
        return found

    @staticmethod
    def _solve(length: sympy.Expr, given: int, found: dict[sympy.Symbol, int]) -> None:
        """Solve for the symbol of a length, if it has a single unknown one."""
        if isinstance(length, sympy.Symbol):
            found.setdefault(length, given)
        elif len(length.free_symbols) == 1 and not length.free_symbols <= found.keys():
            (symbol,) = length.free_symbols
            for each in sympy.solve(length - given, symbol):
                if each.is_Integer:
                    found.setdefault(symbol, int(each))

    def _check_rank(self, name: str, shape: Sequence[int]) -> None:
        if name not in self.inputs:
            names = ", ".join(f"`{other}`" for other in self.inputs) or "none"
            raise InputError(f"The program has no input `{name}`; its inputs are: {names}.")
        if len(shape) != len(self.inputs[name]):
            raise InputError(
                f"Input `{name}` has the shape {list(self.declared(name))}, but {list(shape)} was "
                "given, of another rank."
            )

    def _check_all_bound(self, found: Lengths) -> None:
        for name, shape in self.inputs.items():
            if any(length.free_symbols - found.keys() for length in shape):
                raise InputError(
                    f"Input `{name}` has the shape {list(self.declared(name))}, in which a length "
                    f"is open; give its shape, such as `shapes={{'{name}': ...}}`."
                )

    def _check_conditions(self, found: Lengths) -> None:
        given = ", ".join(f"{self.shown(symbol)} {value}" for symbol, value in found.items())
        for symbol, (low, high) in self.ranges.items():
            value = _value(symbol, found)
            if value is not None and not low <= value <= high:
                raise InputError(
                    f"The program was exported for `{self.shown(symbol)}` from {low} to {high}, "
                    f"but it is {value}; export it with another range."
                )
        for condition in self.conditions:
            if _value(condition, found) is False:
                raise InputError(
                    f"The program was exported for shapes with `{self.shown(condition)}`, which "
                    f"does not hold with {given}; export it with such shapes."
                )


def expression(length: "int | torch.SymInt") -> sympy.Expr:
    """Return a length of torch as an expression."""
    return length.node.expr if isinstance(length, torch.SymInt) else sympy.Integer(length)


def _value(expression: sympy.Basic, found: Lengths) -> int | float | None:
    return value_of(expression, found) if expression.free_symbols <= found.keys() else None


def _names(
    environment: "torch.fx.experimental.symbolic_shapes.ShapeEnv",
) -> dict[sympy.Symbol, sympy.Symbol]:
    """Return the names that `dynamic_shapes` gave to symbols, as far as the program has them."""
    given = environment.source_name_to_debug_name
    found = {}
    for symbol, sources in environment.var_to_sources.items():
        names = [given[source.name] for source in sources if source.name in given]
        if names and names[0].isidentifier():
            found[symbol] = sympy.Symbol(names[0])
    return found
