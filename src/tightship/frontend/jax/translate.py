"""The equations of a traced function, one after another, written as operators."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var
from numpy.typing import NDArray

from tightship.errors import GraphError
from tightship.frontend.finish import finished
from tightship.frontend.jax.call import LOOKED_INTO_MAX, Call
from tightship.frontend.jax.refusal import place_of, refused
from tightship.frontend.jax.table import INLINED, MADE, TRANSLATIONS
from tightship.frontend.jax.tensor import constant_of
from tightship.frontend.writer import Operand, Type, Writer
from tightship.graph import DType, Graph

Array = NDArray[Any]
Atom = Any
"""A variable or a literal of a jaxpr."""
Environment = dict[Var, Operand]

FOLDED_ELEMENTS_MAX = 1 << 24
"""Elements of a constant that is computed while a function is read."""

STEPS_MAX = 64
"""Steps of a `scan` that are written one after another."""

_PLACE = re.compile(r"[^\w]+")


def translated(traced: jax.stages.Traced) -> Graph:
    """The function as a graph.

    Raises:
        GraphError: As `frontend.jax.read`.
    """
    closed = traced.jaxpr
    names = closed.jaxpr.debug_info
    translator = _Translator()
    environment: Environment = {}
    inputs = []
    for variable, stem in zip(closed.jaxpr.invars, names.arg_names, strict=True):
        operand = translator.writer.define(_name(stem), *_type(variable.aval, stem))
        environment[variable] = operand
        inputs.append(operand.name)
    results = translator.run(closed.jaxpr, closed.consts, environment)
    outputs = zip(map(_name, names.result_paths), results, strict=True)
    return finished(translator.writer, traced.fun_name, inputs, outputs)


def _name(path: str) -> str:
    """A place in a tree, as `params.layers.0.w`."""
    return _PLACE.sub(".", path).strip(".")


def _type(aval: jax.core.ShapedArray, owner: str) -> Type:
    """Element type and shape.

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
    """Elements of constants that are folded, by their names."""
    place: str = ""
    """Where the user wrote what is being written."""

    def run(
        self,
        jaxpr: Jaxpr,
        constants: Sequence[Any],
        environment: Environment,
    ) -> list[Operand]:
        """Write a jaxpr whose inputs are in the environment; return its results."""
        place = self.place
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
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
        if name == "scan":
            return self._unrolled(equation, operands)
        if name == "cond" and operands[0].name in self.known:
            branch = equation.params["branches"][int(self.known[operands[0].name])]
            environment = dict(zip(branch.jaxpr.invars, operands[1:], strict=True))
            return self.run(branch.jaxpr, branch.consts, environment)
        if name == "optimization_barrier":
            return operands
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
        """Compute what depends on no input; small, as masks and positions are."""
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
        """A scan over few steps, written one after another."""
        given = equation.params
        if given["length"] > STEPS_MAX:
            raise refused(
                equation, self.place, f"has {given['length']} steps; up to {STEPS_MAX} are unrolled"
            )
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
