"""Translation of a model of operands and operations to graphs and control flow."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tightship.driver.nnapi.constants import DTYPES, Constants, constants_of
from tightship.driver.nnapi.control import control_stage
from tightship.driver.nnapi.emission import Emission, Tensor
from tightship.driver.nnapi.operation_context import OpenDimensionsError, OperationContext
from tightship.driver.nnapi.operation_rules import RULES
from tightship.driver.nnapi.operation_type import CONTROL, OperationType
from tightship.driver.nnapi.routine import (
    DeferredRoutine,
    DeferredStage,
    GraphStage,
    Routine,
    Stage,
    read_by,
)
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.model import Lifetime, Model, Operand, Operation, Subgraph
from tightship.driver.types.operand_type import OperandType
from tightship.driver.types.status import failure, invalid
from tightship.errors import DriverError
from tightship.graph import Constant, Graph, MappedFile

DEPTH_MAX = 16
"""Depth to which subgraphs may nest."""
SUBGRAPHS_MAX = 1024
"""Subgraphs in a model, counted at each use: a few bytes can name very many."""
MAIN = -1
"""Number of the main subgraph; others are numbered by their position in `Model.referenced`."""
_RUN = frozenset({Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT})
"""Lifetimes of values that exist only during a run."""


def graph_of(
    model: Model, pools: Sequence[MappedFile] = (), dimensions: Mapping[int, Dimensions] = {}
) -> Graph:
    """Return the graph of a main subgraph without loops and branches; constants stay in place.

    Args:
        model: Model that passed `check_model`.
        pools: Pools that the model names, in its order.
        dimensions: Dimensions of inputs, by position, for axes that the model leaves unknown.

    Returns:
        A graph of values `operandN`, by index, inputs and outputs in the order of the model.

    Raises:
        DriverError: INVALID_ARGUMENT: an operation breaks a rule of NNAPI, or `dimensions`
            contradict the model; GENERAL_FAILURE: the model is valid but not supported, or an axis
            stays unknown.
    """
    (stage,) = routine_of(model, pools, dimensions).stages
    assert isinstance(stage, GraphStage), stage
    return stage.graph


def routine_of(
    model: Model, pools: Sequence[MappedFile] = (), dimensions: Mapping[int, Dimensions] = {}
) -> Routine:
    """Translate a model's main subgraph; arguments and errors as for `graph_of`."""
    constants = constants_of(model, pools)
    return _Translation(model.main, MAIN, model, constants, dimensions, _Nesting()).routine()


def supported_operations(model: Model, pools: Sequence[MappedFile] = ()) -> tuple[bool, ...]:
    """Return whether each operation of the main subgraph can be translated.

    Operations are judged independently. Where dimensions are unknown, only checks that do not need
    them are made. `model` must have passed `check_model`.
    """
    translation = _Translation(model.main, MAIN, model, constants_of(model, pools), {}, _Nesting())
    return tuple(translation.is_supported(at) for at in range(len(model.main.operations)))


def is_open(model: Model) -> bool:
    """Whether a request must give dimensions of inputs."""
    types = [model.main.operands[index].value_type for index in model.main.input_indexes]
    return not all(is_specified(each.dimensions, is_scalar=each.is_scalar) for each in types)


def check_open(model: Model, pools: Sequence[MappedFile] = ()) -> None:
    """Check a main subgraph as far as possible before a request gives dimensions.

    Raises:
        DriverError: As from `graph_of`.
    """
    _Translation(model.main, MAIN, model, constants_of(model, pools), {}, _Nesting()).check()


@dataclass(slots=True)
class _Nesting:
    """Current depth of subgraphs, and how many more a model may have."""

    depth: int = 0
    left: int = SUBGRAPHS_MAX


class _Translation:
    """Translation of a subgraph, operation by operation.

    Attributes:
        tensors: Values by operand, where dimensions are known.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        number: int,
        model: Model,
        constants: Constants,
        dimensions: Mapping[int, Dimensions],
        nesting: _Nesting,
    ) -> None:
        self._number, self._nesting = number, nesting
        self._subgraph, self._model, self._constants = subgraph, model, constants
        self._emission = Emission()
        self.tensors: dict[int, Tensor] = {}
        for place, index in enumerate(subgraph.input_indexes):
            operand = subgraph.operands[index]
            known = combine(operand.value_type.dimensions, dimensions.get(place, ()))
            if known is None:
                raise invalid(
                    f"Input {place} is given dimensions {list(dimensions[place])}; the model's are "
                    f"{list(operand.value_type.dimensions)}."
                )
            self._declare(index, known)
        for index, operand in enumerate(subgraph.operands):
            if constants.constant(operand) is not None:
                self._declare(index, operand.value_type.dimensions)

    def routine(self) -> Routine:
        """Translate the whole subgraph.

        Raises:
            DriverError: As from `graph_of`.
        """
        main = self._subgraph
        for place, index in enumerate(main.input_indexes):
            self._check_known(place, index)
        stages: list[Stage] = []
        start = 0
        for position, operation in enumerate(main.operations):
            if operation.operation_type not in CONTROL:
                continue
            self._add_graph(stages, start, position)
            stages.append(self._control(position))
            start = position + 1
            if not all(index in self.tensors for index in operation.outputs):
                self._add_rest(stages, start)
                break
        else:
            self._add_graph(stages, start, len(main.operations))
        ends = {*main.input_indexes, *main.output_indexes}
        return Routine(
            tuple(stages),
            main.input_indexes,
            main.output_indexes,
            {index: self.tensors[index] for index in ends if index in self.tensors},
            self._constants_of(stages),
        )

    def is_supported(self, position: int) -> bool:
        """Whether an operation can be translated, perhaps once dimensions are known.

        If it cannot, its outputs get the declared types.
        """
        try:
            self._check_one(position)
        except DriverError:
            self._declare_outputs(position)
            return False
        return True

    def check(self) -> None:
        """Translate as far as dimensions are known.

        Raises:
            DriverError: As from `graph_of`.
        """
        for position in range(len(self._subgraph.operations)):
            self._check_one(position)

    def _check_one(self, position: int) -> None:
        operation = self._subgraph.operations[position]
        try:
            if operation.operation_type in CONTROL:
                self._control(position)
            else:
                self._translate(position)
        except OpenDimensionsError:
            for index in operation.inputs:
                operand = self._operand(index)
                if operand.lifetime == Lifetime.SUBGRAPH:
                    with self._within(operand.location.offset_bytes, {}) as translation:
                        translation.check()
            self._declare_outputs(position)

    def _declare_outputs(self, position: int) -> None:
        for index in self._subgraph.operations[position].outputs:
            self._declare(index, self._operand(index).value_type.dimensions)

    def _check_known(self, place: int, index: int) -> None:
        if index not in self.tensors:
            found = list(self._operand(index).value_type.dimensions)
            raise OpenDimensionsError(
                f"Operand {index} is an input of dimensions {found}: the request must give every "
                f"axis of input {place} that is unknown."
            )

    def _add_graph(self, stages: list[Stage], start: int, stop: int) -> None:
        """Add a graph of the operations `[start, stop)`, unless it is empty."""
        main = self._subgraph
        self._emission = Emission()
        for index in self.tensors:
            self._define(index)
        for position in range(start, stop):
            self._translate(position)
        inside, after = main.operations[start:stop], main.operations[stop:]
        written = {index for operation in inside for index in operation.outputs}
        needed = {index for operation in after for index in operation.inputs}
        outputs = [
            *(index for index in main.output_indexes if index in written),
            *sorted((needed & written) - set(main.output_indexes)),
        ]
        if not outputs:
            return
        inputs = self._graph_inputs(inside, written) if stages or after else main.input_indexes
        graph = self._emission.graph(
            "main",
            [self.tensors[index] for index in inputs],
            [self.tensors[index] for index in outputs],
        )
        stages.append(GraphStage(graph, tuple(inputs), tuple(outputs)))

    def _add_rest(self, stages: list[Stage], start: int) -> None:
        """Defer the operations from `start` on to the run, checked as far as possible."""
        main = self._subgraph
        for position in range(start, len(main.operations)):
            self._check_one(position)
        inside = main.operations[start:]
        written = {index for operation in inside for index in operation.outputs}
        read = {index for operation in inside for index in operation.inputs}
        inputs = tuple(sorted(i for i in read - written if self._operand(i).lifetime in _RUN))
        outputs = tuple(index for index in main.output_indexes if index in written)
        operands = list(main.operands)
        for index in inputs:
            operands[index] = replace(operands[index], lifetime=Lifetime.SUBGRAPH_INPUT)
        rest = Subgraph(tuple(operands), inside, inputs, outputs)
        if outputs:
            stages.append(DeferredStage(self._late(rest, self._number), inputs, outputs))

    def _graph_inputs(self, inside: Sequence[Operation], written: set[int]) -> list[int]:
        read = {index for operation in inside for index in operation.inputs}
        return sorted(
            index
            for index in read - written
            if index in self.tensors and self._constants.constant(self._operand(index)) is None
        )

    def _translate(self, position: int) -> None:
        """Add the nodes of an operation that runs no subgraph."""
        context = self._context(position)
        operation = context.operation
        if operation.operation_type not in set(RULES):
            raise context.uncovered("operations of this type are not supported")
        made = RULES[OperationType(operation.operation_type)](context)
        (index,) = operation.outputs
        self._check_output(context, 0, made.shape)
        self.tensors[index] = self._emission.rename(made, f"operand{index}")

    def _control(self, position: int) -> Stage:
        """Return the stage of a loop or branch, and declare its outputs of known shape."""
        context = self._context(position)
        stage, shapes = control_stage(context, self._model, self._subroutine, self._deferred)
        for index, shape in zip(context.operation.outputs, shapes, strict=False):
            if shape is not None:
                self._declare(index, shape)
        return stage

    def _subroutine(self, number: int, dimensions: Mapping[int, Dimensions]) -> Routine:
        with self._within(number, dimensions) as translation:
            return translation.routine()

    def _deferred(self, number: int) -> DeferredRoutine:
        return self._late(self._model.referenced[number], number)

    def _late(self, subgraph: Subgraph, number: int) -> DeferredRoutine:
        """Return a deferred routine that ignores the inputs it does not read."""
        model, constants, depth = self._model, self._constants, self._nesting.depth
        read = {index for operation in subgraph.operations for index in operation.inputs}
        places = tuple(at for at, index in enumerate(subgraph.input_indexes) if index in read)
        inputs = tuple(subgraph.input_indexes[at] for at in places)
        reader = replace(subgraph, input_indexes=inputs)

        def translate(dimensions: Mapping[int, Dimensions]) -> Routine:
            nesting = _Nesting(depth)
            return _Translation(reader, number, model, constants, dimensions, nesting).routine()

        declared = tuple(subgraph.operands[index].value_type.dimensions for index in inputs)
        return DeferredRoutine((number, len(subgraph.operations)), places, declared, translate)

    @contextmanager
    def _within(
        self, number: int, dimensions: Mapping[int, Dimensions]
    ) -> "Iterator[_Translation]":
        """Translate a nested subgraph.

        Raises:
            DriverError: GENERAL_FAILURE: subgraphs nest too deep or are too many.
        """
        nesting = self._nesting
        if nesting.depth == DEPTH_MAX or not nesting.left:
            raise failure(
                f"The model runs subgraphs more than {DEPTH_MAX} deep, or more than "
                f"{SUBGRAPHS_MAX} times; make it flatter."
            )
        nesting.depth += 1
        nesting.left -= 1
        try:
            model, inner = self._model, self._model.referenced[number]
            yield _Translation(inner, number, model, self._constants, dimensions, nesting)
        finally:
            nesting.depth -= 1

    def _context(self, position: int) -> OperationContext:
        self._emission.prefix = f"operation{position}."
        return OperationContext(
            position,
            self._subgraph.operations[position],
            self._subgraph.operands,
            self._constants,
            self.tensors,
            self._emission,
        )

    def _check_output(self, context: OperationContext, place: int, made: tuple[int, ...]) -> None:
        index = context.operation.outputs[place]
        declared = self._operand(index).value_type.dimensions
        if combine(declared, made) is None:
            raise context.broken(
                f"operand {index} (output {place}) has dimensions {list(declared)}; its inputs "
                f"give {list(made)}"
            )

    def _constants_of(self, stages: Sequence[Stage]) -> dict[int, Constant]:
        given = {
            index for each in stages if not isinstance(each, GraphStage) for index in read_by(each)
        }
        found = {index: self._constants.constant(self._operand(index)) for index in given}
        return {index: constant for index, constant in found.items() if constant is not None}

    def _operand(self, index: int) -> Operand:
        return self._subgraph.operands[index]

    def _declare(self, index: int, dimensions: Dimensions) -> None:
        """Record the dimensions of an operand, if known, and define its value."""
        value_type = self._operand(index).value_type
        dtype = DTYPES.get(OperandType(value_type.operand_type))
        if dtype is not None and is_specified(dimensions, is_scalar=value_type.is_scalar):
            self.tensors[index] = Tensor(f"operand{index}", dtype, dimensions)
            self._define(index)

    def _define(self, index: int) -> None:
        constant = self._constants.constant(self._operand(index))
        self._emission.define(self.tensors[index], constant)
