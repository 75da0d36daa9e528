"""Translation of a traced function's equations to operators."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from numpy.typing import NDArray

from tightship.errors import GraphError
from tightship.frontend.body import body_of, inner_writer
from tightship.frontend.finish import finished
from tightship.frontend.jax.call import LOOKED_INTO_MAX, Call, place_of, refused
from tightship.frontend.jax.program import Weights
from tightship.frontend.jax.table import INLINED, MADE, TRANSLATIONS, UNSET
from tightship.frontend.jax.tensor import constant_of
from tightship.frontend.writer import Operand, Type, Writer
from tightship.graph import AttributeValue, DType, Fill, Graph

Array = NDArray[Any]
Atom = Any
"""Variable or literal of a jaxpr."""
Environment = dict[Var, Operand]

FOLDED_ELEMENTS_MAX = 1 << 24
"""Most elements of a constant that is computed while a function is read."""

STEPS_MAX = 64
"""Most steps of a `scan` that are unrolled."""

_PLACE = re.compile(r"[^\w]+")


def translated(traced: jax.stages.Traced, weights: Weights | None = None) -> Graph:
    """Return the function as a graph.

    Args:
        traced: The function.
        weights: Constants for its first arguments, and names of the others.

    Raises:
        GraphError: As from `frontend.jax.read`.
    """
    closed = traced.jaxpr
    names = closed.jaxpr.debug_info
    translator = _Translator()
    environment: Environment = {}
    inputs = []
    variables, stems = list(closed.jaxpr.invars), names.arg_names
    if weights is not None:
        count, stems = len(weights.constants), weights.inputs
        for variable, (stem, constant) in zip(variables, weights.constants.items(), strict=False):
            environment[variable] = translator.writer.constant(stem, constant)
        variables = variables[count:]
    for variable, stem in zip(variables, stems, strict=True):
        operand = translator.writer.define(_name(stem), *_type(variable.aval, stem))
        environment[variable] = operand
        inputs.append(operand.name)
    results = translator.run(closed.jaxpr, closed.consts, environment)
    outputs = zip(map(_name, names.result_paths), results, strict=True)
    return finished(translator.writer, traced.fun_name, inputs, outputs)


def _name(path: str) -> str:
    """Return a place in a tree, such as `params.layers.0.w`."""
    return _PLACE.sub(".", path).strip(".")


def _type(aval: jax.core.ShapedArray, owner: str) -> Type:
    """Return element type and shape.

    Raises:
        GraphError: It is a key of random numbers, or has an element type of jax's own.
    """
    if not isinstance(aval.dtype, np.dtype) or aval.dtype == jax.dtypes.float0:
        raise GraphError(
            f"`{owner}` is an array of `{aval.dtype}`, which no operator takes; leave it outside "
            "the function."
        )
    return DType.of(aval.dtype), tuple(int(length) for length in aval.shape)


@dataclass(slots=True)
class _Translator:
    writer: Writer = field(default_factory=Writer)
    known: dict[str, Array] = field(default_factory=dict)
    """Elements of constants that may be folded, by name."""
    place: str = ""
    """Place in the user's source of the current equation."""

    def run(
        self,
        jaxpr: Jaxpr,
        constants: Sequence[Any],
        environment: Environment,
    ) -> list[Operand]:
        """Write a jaxpr whose inputs are in the environment; return its results."""
        place = self.place
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            _type(variable.aval, "captured")  # refuses keys of random numbers
            environment[variable] = self._constant(np.asarray(constant), "captured")
        for equation in jaxpr.eqns:
            self.place = place_of(equation) or place
            operands = tuple(self._operand(each, environment) for each in equation.invars)
            results = self._results(equation, operands)
            environment.update(zip(equation.outvars, results, strict=True))
        return [self._operand(each, environment) for each in jaxpr.outvars]

    def _operand(self, atom: Atom, environment: Environment) -> Operand:
        if isinstance(atom, Literal):
            return self._constant(np.asarray(atom.val, atom.aval.dtype), "number")
        return environment[atom]

    def _constant(self, array: Array, stem: str) -> Operand:
        operand = self.writer.constant(stem, constant_of(array, stem))
        if array.size <= LOOKED_INTO_MAX:
            self.known[operand.name] = array
        return operand

    def _results(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> Sequence[Operand]:
        name = equation.primitive.name
        if name in INLINED:
            called = equation.params[INLINED[name]]
            jaxpr = getattr(called, "jaxpr", called)
            environment = dict(zip(jaxpr.invars, operands, strict=True))
            return self.run(jaxpr, getattr(called, "consts", ()), environment)
        if name in CONTROL:
            return CONTROL[name](self, equation, operands)
        if name == "optimization_barrier":
            return operands
        if name in UNSET:
            dtype, shape = _type(equation.outvars[0].aval, name)
            return [self.writer.constant(name, Fill(np.zeros((), dtype.numpy), shape))]
        found = self._folded(equation, operands)
        return self._translated(equation, operands) if found is None else found

    def _translated(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> Sequence[Operand]:
        name = equation.primitive.name
        translation = TRANSLATIONS.get(name)
        if translation is None:
            raise refused(equation, self.place, "has no translation")
        types = tuple(_type(each.aval, name) for each in equation.outvars)
        found = translation(Call(self.writer, name, types, equation, operands, self.place))
        results = found if isinstance(found, tuple) else (found,)
        for operand, type_ in zip(results, types, strict=True):
            assert (operand.dtype, operand.shape) == type_, (name, operand, type_)
            constant = self.writer.constants.get(operand.name)
            if constant is not None and np.prod(operand.shape) <= LOOKED_INTO_MAX:
                self.known[operand.name] = constant.array()
        return results

    def _folded(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> list[Operand] | None:
        """Compute what depends on no input, if it is small, such as masks and positions."""
        name = equation.primitive.name
        is_filled = name == "broadcast_in_dim" and not operands[0].rank
        elements = sum(each.aval.size for each in equation.outvars)
        is_known = name in TRANSLATIONS or name in MADE
        if is_filled or not is_known or elements > FOLDED_ELEMENTS_MAX:
            return None
        arrays = [self.known.get(operand.name) for operand in operands]
        if any(array is None for array in arrays):
            return None
        with jax.ensure_compile_time_eval():
            found = equation.primitive.bind(*arrays, **equation.params)
        results = found if equation.primitive.multiple_results else [found]
        return [self._constant(np.asarray(each), name) for each in results]

    def _unrolled(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> list[Operand]:
        given = equation.params
        fixed, carried = given["num_consts"], given["num_consts"] + given["num_carry"]
        constants, carry, rows = operands[:fixed], operands[fixed:carried], operands[carried:]
        jaxpr = given["jaxpr"]
        count = len(carry)
        types = tuple(_type(each.aval, "scan") for each in equation.outvars)
        call = Call(self.writer, "scan", types, equation, tuple(operands), self.place)
        made: list[list[Operand]] = [[] for _ in jaxpr.jaxpr.outvars[count:]]
        steps = range(given["length"])
        for step in reversed(steps) if given["reverse"] else steps:
            each = [
                call.add(
                    "Gather",
                    (row.dtype, row.shape[1:]),
                    row,
                    call.scalar(step, DType.INT64),
                    axis=0,
                )
                for row in rows
            ]
            environment = dict(zip(jaxpr.jaxpr.invars, (*constants, *carry, *each), strict=True))
            results = self.run(jaxpr.jaxpr, jaxpr.consts, environment)
            carry = tuple(results[:count])
            for column, result in zip(made, results[count:], strict=True):
                column.append(call.reshaped(result, (1, *result.shape)))
        stacked = [
            call.add("Concat", type_, *(column[::-1] if given["reverse"] else column), axis=0)
            for column, type_ in zip(made, types[count:], strict=True)
        ]
        return [*carry, *stacked]

    def _inner(self) -> "_Translator":
        """Return a translator of a body, which can read outer values."""
        return _Translator(inner_writer(self.writer), self.known, self.place)

    def _closed(self, closed: ClosedJaxpr, operands: Sequence[Operand]) -> list[Operand]:
        environment = dict(zip(closed.jaxpr.invars, operands, strict=True))
        return self.run(closed.jaxpr, closed.consts, environment)

    def _outputs(self, equation: JaxprEqn) -> list[Operand]:
        name = equation.primitive.name
        return [self.writer.define(name, *_type(each.aval, name)) for each in equation.outvars]

    def _scan(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> list[Operand]:
        is_short = equation.params["length"] <= STEPS_MAX
        return (self._unrolled if is_short else self._scanned)(equation, operands)

    def _scanned(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> list[Operand]:
        """Translate a scan of many steps to a Scan."""
        given = equation.params
        fixed, carried = given["num_consts"], given["num_consts"] + given["num_carry"]
        carry, rows = operands[fixed:carried], operands[carried:]
        if not rows:  # ONNX's Scan needs an input to iterate over
            rows = (self._constant(np.arange(given["length"]), "step"),)
        inner = self._inner()
        states = [inner.writer.define("carry", each.dtype, each.shape) for each in carry]
        slices = [inner.writer.define("row", each.dtype, each.shape[1:]) for each in rows]
        taken = (*operands[:fixed], *states, *slices)[: len(operands)]
        results = inner._closed(given["jaxpr"], taken)
        body = body_of(inner.writer, self.writer, [*states, *slices], results)
        outputs = self._outputs(equation)
        way = int(given["reverse"])
        attributes: dict[str, AttributeValue] = {
            "body": body,
            "num_scan_inputs": len(rows),
            "scan_input_directions": (way,) * len(rows),
            "scan_output_directions": (way,) * (len(outputs) - len(carry)),
        }
        self.writer.node("Scan", (*carry, *rows), outputs, attributes)
        return outputs

    def _looped(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> list[Operand]:
        """Translate `while` to a Loop."""
        given = equation.params
        ends, fixed = given["cond_nconsts"], given["cond_nconsts"] + given["body_nconsts"]
        carry = operands[fixed:]
        (starts,) = self._closed(given["cond_jaxpr"], (*operands[:ends], *carry))
        inner = self._inner()
        iteration = inner.writer.define("iteration", DType.INT64, ())
        goes_on = inner.writer.define("goes_on", DType.BOOL, ())
        states = [inner.writer.define("carry", each.dtype, each.shape) for each in carry]
        results = inner._closed(given["body_jaxpr"], (*operands[ends:fixed], *states))
        (again,) = inner._closed(given["cond_jaxpr"], (*operands[:ends], *results))
        body = body_of(inner.writer, self.writer, [iteration, goes_on, *states], [again, *results])
        outputs = self._outputs(equation)
        self.writer.node("Loop", (None, starts, *carry), outputs, {"body": body})
        return outputs

    def _chosen(self, equation: JaxprEqn, operands: tuple[Operand, ...]) -> list[Operand]:
        """Translate a known choice to its branch; others to an If, nested for several branches."""
        index, *given = operands
        branches = equation.params["branches"]
        if index.name in self.known:
            return self._closed(branches[int(self.known[index.name])], given)
        return self._choice(equation, (index, *given), range(len(branches)))

    def _choice(
        self, equation: JaxprEqn, operands: tuple[Operand, ...], among: range
    ) -> list[Operand]:
        if len(among) == 1:
            return self._closed(equation.params["branches"][among[0]], operands[1:])
        half = len(among) // 2
        types = tuple(_type(each.aval, "cond") for each in equation.outvars)
        call = Call(self.writer, "cond", types, equation, operands, self.place)
        bound = call.scalar(among[half], operands[0].dtype)
        condition = call.add("Less", (DType.BOOL, ()), operands[0], bound)
        bodies = {}
        for name, part in (("then_branch", among[:half]), ("else_branch", among[half:])):
            inner = self._inner()
            results = inner._choice(equation, operands, part)
            bodies[name] = body_of(inner.writer, self.writer, (), results)
        outputs = self._outputs(equation)
        self.writer.node("If", (condition,), outputs, bodies)
        return outputs


CONTROL = {
    "cond": _Translator._chosen,
    "scan": _Translator._scan,
    "while": _Translator._looped,
}
"""Functions of primitives that run a jaxpr conditionally or repeatedly."""
