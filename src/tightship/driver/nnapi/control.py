"""Translation of WHILE and IF, the operations that run subgraphs."""

from collections.abc import Callable, Mapping, Sequence

from tightship.driver.nnapi.operation_context import OperationContext
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.nnapi.routine import BranchStage, DeferredRoutine, LoopStage, Routine
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.model import Lifetime, Model, Subgraph
from tightship.driver.types.operand_type import OperandType, ValueType

TranslateSubgraph = Callable[[int, Mapping[int, Dimensions]], Routine]
"""Translates a subgraph, by its number, for inputs of these dimensions, by their position."""
Defer = Callable[[int], DeferredRoutine]
"""Defers the translation of a subgraph until a run knows the dimensions of its inputs."""
Shapes = list[tuple[int, ...] | None]
"""Shapes of outputs; None where only a run determines them."""


def control_stage(
    context: OperationContext, model: Model, translate: TranslateSubgraph, defer: Defer
) -> tuple[LoopStage | BranchStage, Shapes]:
    """Translate an operation that runs subgraphs; return its stage and its output shapes."""
    called = _Called(context, model, translate, defer)
    if context.operation.operation_type == OperationType.WHILE:
        return called.loop()
    return called.branch()


class _Called:
    """Subgraphs of an operation, checked against its operands."""

    def __init__(
        self, context: OperationContext, model: Model, translate: TranslateSubgraph, defer: Defer
    ) -> None:
        self._context, self._model, self._translate, self._defer = context, model, translate, defer

    def loop(self) -> tuple[LoopStage, Shapes]:
        """Translate WHILE: condition, body, state and invariant operands."""
        context = self._context
        self._check_least(2)
        given = context.operation.inputs[2:]
        numbers = self._number(0), self._number(1)
        condition, body = [self._model.referenced[each] for each in numbers]
        state = len(body.output_indexes)
        if not len(context.operation.outputs) <= state <= len(given):
            raise context.broken(
                f"its body has {state} outputs; NNAPI requires at least the operation's "
                f"{len(context.operation.outputs)} outputs and at most its {len(given)} operands"
            )
        test, iteration = [self._routine(each, given) for each in numbers]
        self._check_test(condition, test)
        self._check_types(
            body, context.operation.inputs[2 : 2 + state], "output", body.output_indexes
        )
        self._check_types(
            body,
            context.operation.outputs,
            "output",
            body.output_indexes[: len(context.operation.outputs)],
        )
        ends = given, context.operation.outputs, self._declared()
        first = [context.tensors[index].shape for index in given[:state]]
        if iteration.output_shapes == first:
            return LoopStage(test, iteration, *ends), self._known(iteration.output_shapes)
        late = LoopStage(self._defer(numbers[0]), self._defer(numbers[1]), *ends)
        return late, self._known([None] * state)

    def branch(self) -> tuple[BranchStage, Shapes]:
        """Translate IF: the condition, two branches and their operands."""
        context = self._context
        self._check_least(3)
        given = context.operation.inputs[3:]
        self._check_flag(context.type_of(0), context.tensor(0, {OperandType.TENSOR_BOOL8}).shape)
        numbers = [self._number(position) for position in (1, 2)]
        when_true, when_false = [self._routine(each, given) for each in numbers]
        for each in [self._model.referenced[number] for number in numbers]:
            if len(each.output_indexes) != len(context.operation.outputs):
                raise context.broken(
                    f"a branch has {len(each.output_indexes)} outputs; the operation has "
                    f"{len(context.operation.outputs)}"
                )
            self._check_types(each, context.operation.outputs, "output", each.output_indexes)
        ends = given, context.operation.outputs, self._declared()
        stage = BranchStage(context.operation.inputs[0], when_true, when_false, *ends)
        for made in when_true.output_shapes, when_false.output_shapes:
            self._check_made(made)
        rows = zip(when_true.output_shapes, when_false.output_shapes, strict=True)
        return stage, self._known([one if one == other else None for one, other in rows])

    def _check_least(self, least: int) -> None:
        if self._context.input_count < least:
            raise self._context.broken(
                f"it has {self._context.input_count} inputs; NNAPI requires at least {least}"
            )

    def _number(self, position: int) -> int:
        operand = self._context.operands[self._context.operation.inputs[position]]
        if operand.lifetime != Lifetime.SUBGRAPH:
            raise self._context.broken(f"{self._context.name_of(position)} is not a subgraph")
        return operand.location.offset_bytes

    def _routine(self, number: int, given: Sequence[int]) -> Routine:
        context, subgraph = self._context, self._model.referenced[number]
        if len(subgraph.input_indexes) != len(given):
            raise context.broken(
                f"a subgraph has {len(subgraph.input_indexes)} inputs, not the {len(given)} given"
            )
        self._check_types(subgraph, given, "input", subgraph.input_indexes)
        for index in given:
            if index not in context.tensors:
                raise context.unsized(context.operation.inputs.index(index))
        shapes = {place: context.tensors[index].shape for place, index in enumerate(given)}
        return self._translate(number, shapes)

    def _check_types(
        self, subgraph: Subgraph, outer: Sequence[int], what: str, inner: Sequence[int]
    ) -> None:
        for index, own in zip(outer, inner, strict=False):
            mine, its = (
                self._context.operands[index].value_type,
                subgraph.operands[own].value_type,
            )
            same = (mine.operand_type, mine.scale, mine.zero_point) == (
                its.operand_type,
                its.scale,
                its.zero_point,
            )
            if not same or combine(mine.dimensions, its.dimensions) is None:
                raise self._context.broken(
                    f"operand {index} and operand {own}, the corresponding {what} of a subgraph, "
                    "differ in type, quantization or dimensions"
                )

    def _check_test(self, condition: Subgraph, test: Routine) -> None:
        if len(test.outputs) != 1:
            raise self._context.broken(f"its condition has {len(test.outputs)} outputs, not 1")
        value_type = condition.operands[test.outputs[0]].value_type
        self._check_flag(value_type, test.output_shapes[0] or (1,))

    def _check_flag(self, value_type: ValueType, shape: tuple[int, ...]) -> None:
        if value_type.operand_type != OperandType.TENSOR_BOOL8 or shape != (1,):
            raise self._context.broken(
                f"its condition is a {OperandType(value_type.operand_type).name} of dimensions "
                f"{list(shape)}; NNAPI requires TENSOR_BOOL8 and [1]"
            )

    def _declared(self) -> tuple[Dimensions, ...]:
        operands = self._context.operands
        return tuple(
            operands[index].value_type.dimensions for index in self._context.operation.outputs
        )

    def _known(self, made: Shapes) -> Shapes:
        """Return the shapes of the outputs, as computed or else as declared."""
        self._check_made(made)
        types = [
            self._context.operands[index].value_type for index in self._context.operation.outputs
        ]
        return [
            each.dimensions
            if shape is None and is_specified(each.dimensions, is_scalar=each.is_scalar)
            else shape
            for shape, each in zip(made, types, strict=False)
        ]

    def _check_made(self, made: Shapes) -> None:
        for place, (shape, declared) in enumerate(zip(made, self._declared(), strict=False)):
            if shape is not None and combine(declared, shape) is None:
                raise self._context.broken(
                    f"operand {self._context.operation.outputs[place]} (output {place}) has "
                    f"dimensions {list(declared)}; a subgraph computes {list(shape)}"
                )
