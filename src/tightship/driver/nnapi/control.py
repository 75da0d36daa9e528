"""WHILE and IF: operations that run subgraphs."""

from collections.abc import Callable, Mapping, Sequence

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.nnapi.routine import BranchStage, LoopStage, Routine
from tightship.driver.nnapi.site import Site
from tightship.driver.rules.dimensions import Dimensions, combine
from tightship.driver.rules.model import Lifetime, Model, Subgraph
from tightship.driver.rules.operand_type import OperandType, ValueType

TranslateSubgraph = Callable[[Subgraph, Mapping[int, Dimensions]], Routine]
"""What runs for a subgraph whose inputs, by their place, have these dimensions."""


def control_stage(
    site: Site, model: Model, translate: TranslateSubgraph
) -> tuple[LoopStage | BranchStage, list[Tensor]]:
    """An operation that runs subgraphs of a model, and its outputs."""
    called = _Called(site, model, translate)
    if site.operation.operation_type == OperationType.WHILE:
        return called.loop()
    return called.branch()


class _Called:
    """The subgraphs of an operation, checked against what it gives them."""

    def __init__(self, site: Site, model: Model, translate: TranslateSubgraph) -> None:
        self._site, self._model, self._translate = site, model, translate

    def loop(self) -> tuple[LoopStage, list[Tensor]]:
        """WHILE: condition, body, the state, and what stays as it is."""
        site = self._site
        self._check_least(2)
        given = site.operation.inputs[2:]
        condition, body = self._subgraph(0), self._subgraph(1)
        state = len(body.output_indexes)
        if not len(site.operation.outputs) <= state <= len(given):
            raise site.broken(
                f"its body gives {state} values; NNAPI wants at least the operation's "
                f"{len(site.operation.outputs)} outputs and at most its {len(given)} operands"
            )
        test, turn = self._routine(condition, given), self._routine(body, given)
        self._check_test(condition, test)
        self._check_types(body, site.operation.inputs[2 : 2 + state], "output", body.output_indexes)
        for index, made in zip(given, turn.output_tensors, strict=False):
            if made.shape != site.tensors[index].shape:
                raise site.uncovered(
                    f"operand {index} has dimensions {list(site.tensors[index].shape)}, and "
                    f"{list(made.shape)} after a turn; they must stay the same"
                )
        self._check_types(
            body,
            site.operation.outputs,
            "output",
            body.output_indexes[: len(site.operation.outputs)],
        )
        stage = LoopStage(test, turn, given, site.operation.outputs)
        return stage, self._outputs(turn)

    def branch(self) -> tuple[BranchStage, list[Tensor]]:
        """IF: the condition, two branches, and what they take."""
        site = self._site
        self._check_least(3)
        given = site.operation.inputs[3:]
        self._check_flag(site.type_of(0), site.tensor(0, {OperandType.TENSOR_BOOL8}).shape)
        branches = [self._subgraph(position) for position in (1, 2)]
        routines = [self._routine(each, given) for each in branches]
        for each in branches:
            if len(each.output_indexes) != len(site.operation.outputs):
                raise site.broken(
                    f"a branch gives {len(each.output_indexes)} values, and it has "
                    f"{len(site.operation.outputs)} outputs"
                )
            self._check_types(each, site.operation.outputs, "output", each.output_indexes)
        shapes = [[made.shape for made in each.output_tensors] for each in routines]
        if shapes[0] != shapes[1]:
            raise site.uncovered("its branches give values of different dimensions")
        when_true, when_false = routines
        stage = BranchStage(
            site.operation.inputs[0], when_true, when_false, given, site.operation.outputs
        )
        return stage, self._outputs(when_true)

    def _check_least(self, least: int) -> None:
        if self._site.input_count < least:
            raise self._site.broken(
                f"it has {self._site.input_count} inputs, and NNAPI wants at least {least}"
            )

    def _subgraph(self, position: int) -> Subgraph:
        operand = self._site.operands[self._site.operation.inputs[position]]
        if operand.lifetime != Lifetime.SUBGRAPH:
            raise self._site.broken(f"{self._site.name_of(position)} is no subgraph")
        return self._model.referenced[operand.location.offset_bytes]

    def _routine(self, subgraph: Subgraph, given: Sequence[int]) -> Routine:
        """What runs for a subgraph with these operands of the operation's own."""
        site = self._site
        if len(subgraph.input_indexes) != len(given):
            raise site.broken(
                f"a subgraph takes {len(subgraph.input_indexes)} values and is given {len(given)}"
            )
        self._check_types(subgraph, given, "input", subgraph.input_indexes)
        for index in given:
            if index not in site.tensors:
                raise site.unsized(site.operation.inputs.index(index))
        shapes = {place: site.tensors[index].shape for place, index in enumerate(given)}
        return self._translate(subgraph, shapes)

    def _check_types(
        self, subgraph: Subgraph, outer: Sequence[int], what: str, inner: Sequence[int]
    ) -> None:
        for index, own in zip(outer, inner, strict=False):
            mine, its = (
                self._site.operands[index].value_type,
                subgraph.operands[own].value_type,
            )
            same = (mine.operand_type, mine.scale, mine.zero_point) == (
                its.operand_type,
                its.scale,
                its.zero_point,
            )
            if not same or combine(mine.dimensions, its.dimensions) is None:
                raise self._site.broken(
                    f"operand {index} and the {what} of a subgraph that it is, operand {own}, "
                    "differ in type, quantization or dimensions"
                )

    def _check_test(self, condition: Subgraph, test: Routine) -> None:
        if len(test.outputs) != 1:
            raise self._site.broken(f"its condition gives {len(test.outputs)} values, not 1")
        value_type = condition.operands[test.outputs[0]].value_type
        self._check_flag(value_type, test.output_tensors[0].shape)

    def _check_flag(self, value_type: ValueType, shape: tuple[int, ...]) -> None:
        if value_type.operand_type != OperandType.TENSOR_BOOL8 or shape != (1,):
            raise self._site.broken(
                f"its condition is a {OperandType(value_type.operand_type).name} of dimensions "
                f"{list(shape)}; NNAPI wants TENSOR_BOOL8 and [1]"
            )

    def _outputs(self, routine: Routine) -> list[Tensor]:
        made = routine.output_tensors
        return [
            Tensor(f"operand{index}", each.dtype, each.shape)
            for index, each in zip(self._site.operation.outputs, made, strict=False)
        ]
