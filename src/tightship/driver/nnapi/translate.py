"""A model of operands and operations as a graph."""

from collections.abc import Callable, Mapping, Sequence

from tightship.driver.nnapi import arrangement, convolution, elementwise, pooling
from tightship.driver.nnapi.constants import DTYPES, constants_of
from tightship.driver.nnapi.emission import Emission, Tensor
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.nnapi.site import Site
from tightship.driver.rules.dimensions import Dimensions, combine, is_specified
from tightship.driver.rules.model import Model, Operand
from tightship.driver.rules.operand_type import OperandType
from tightship.driver.rules.status import failure, invalid
from tightship.errors import DriverError
from tightship.graph import Graph, MappedFile

_RULES: Mapping[OperationType, Callable[[Site], Tensor]] = {
    OperationType.ADD: elementwise.binary,
    OperationType.AVERAGE_POOL_2D: pooling.average_pool,
    OperationType.CONCATENATION: arrangement.concatenation,
    OperationType.CONV_2D: convolution.convolution,
    OperationType.DEPTHWISE_CONV_2D: convolution.depthwise_convolution,
    OperationType.DEQUANTIZE: elementwise.dequantize,
    OperationType.FULLY_CONNECTED: convolution.fully_connected,
    OperationType.LOGISTIC: elementwise.logistic,
    OperationType.MAX_POOL_2D: pooling.max_pool,
    OperationType.MUL: elementwise.binary,
    OperationType.RELU: elementwise.activation,
    OperationType.RELU1: elementwise.activation,
    OperationType.RELU6: elementwise.activation,
    OperationType.RESHAPE: arrangement.reshape,
    OperationType.SOFTMAX: elementwise.softmax,
    OperationType.TANH: elementwise.tanh,
    OperationType.DIV: elementwise.binary,
    OperationType.SUB: elementwise.binary,
    OperationType.QUANTIZE: elementwise.quantize,
}


def graph_of(
    model: Model, pools: Sequence[MappedFile] = (), dimensions: Mapping[int, Dimensions] = {}
) -> Graph:
    """The graph of a model's main subgraph; constants stay where they are, unread.

    Args:
        model: One that `check_model` has passed.
        pools: Those that the model names, in its order.
        dimensions: Of inputs, by their place among the inputs: what a request says of axes that
            the model leaves unknown.

    Returns:
        A graph of values `operandN`, by index, inputs and outputs in the order of the model.

    Raises:
        DriverError: INVALID_ARGUMENT where an operation breaks a rule of NNAPI, or `dimensions`
            contradict the model; GENERAL_FAILURE where the model keeps the rules and is not
            translated, as where an axis stays unknown.
    """
    translation = _Translation(model, pools, dimensions)
    inputs = [translation.input(index) for index in model.main.input_indexes]
    for position in range(len(model.main.operations)):
        translation.translate(position)
    outputs = [translation.tensors[index] for index in model.main.output_indexes]
    return translation.emission.graph("main", inputs, outputs)


def supported_operations(model: Model, pools: Sequence[MappedFile] = ()) -> tuple[bool, ...]:
    """Whether each operation of the main subgraph can be translated, whatever the others are.

    One that reads a tensor of unknown dimensions cannot; what a model leaves unknown and its
    operations imply is known. `model` is one that `check_model` has passed.
    """
    translation = _Translation(model, pools, {})
    return tuple(translation.is_supported(at) for at in range(len(model.main.operations)))


class _Translation:
    """A main subgraph, operation by operation.

    Attributes:
        tensors: Values of the graph by operand, where their dimensions are known.
    """

    def __init__(
        self, model: Model, pools: Sequence[MappedFile], dimensions: Mapping[int, Dimensions]
    ) -> None:
        self.emission = Emission()
        self.tensors: dict[int, Tensor] = {}
        self._main = model.main
        self._constants = constants_of(model, pools)
        for place, index in enumerate(model.main.input_indexes):
            operand = model.main.operands[index]
            known = combine(operand.value_type.dimensions, dimensions.get(place, ()))
            if known is None:
                raise invalid(
                    f"Input {place} has dimensions {list(dimensions[place])} in the request, and "
                    f"{list(operand.value_type.dimensions)} in the model."
                )
            self._define(index, operand, known)
        for index, operand in enumerate(model.main.operands):
            if self._constants.constant(operand) is not None:
                self._define(index, operand, operand.value_type.dimensions)

    def input(self, index: int) -> Tensor:
        """An input, its dimensions known."""
        if index not in self.tensors:
            found = list(self._main.operands[index].value_type.dimensions)
            raise failure(
                f"Operand {index} is an input of dimensions {found}: the request must give every "
                "axis that is unknown."
            )
        return self.tensors[index]

    def translate(self, position: int) -> None:
        """Make the nodes of an operation.

        Raises:
            DriverError: As `graph_of`.
        """
        operation = self._main.operations[position]
        self.emission.prefix = f"operation{position}."
        site = Site(
            position,
            operation,
            self._main.operands,
            self._constants,
            self.tensors,
            self.emission,
        )
        if operation.operation_type not in set(_RULES):
            raise site.uncovered("no operation of this type is")
        made = _RULES[OperationType(operation.operation_type)](site)
        (index,) = operation.outputs
        declared = self._main.operands[index].value_type.dimensions
        if combine(declared, made.shape) is None:
            raise site.broken(
                f"operand {index} (output 0) has dimensions {list(declared)}; its inputs make "
                f"{list(made.shape)}"
            )
        self.tensors[index] = self.emission.rename(made, f"operand{index}")

    def is_supported(self, position: int) -> bool:
        """Whether an operation is translated; if not, its outputs are what the model declares."""
        try:
            self.translate(position)
        except DriverError:
            for index in self._main.operations[position].outputs:
                operand = self._main.operands[index]
                self._define(index, operand, operand.value_type.dimensions)
            return False
        return True

    def _define(self, index: int, operand: Operand, dimensions: Dimensions) -> None:
        value_type = operand.value_type
        dtype = DTYPES.get(OperandType(value_type.operand_type))
        if dtype is not None and is_specified(dimensions, is_scalar=value_type.is_scalar):
            tensor = Tensor(f"operand{index}", dtype, dimensions)
            self.tensors[index] = self.emission.define(tensor, self._constants.constant(operand))
