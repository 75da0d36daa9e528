"""Comparisons."""

from tightship.driver.nnapi.elementwise import broadcast
from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.operation_context import NUMBERS, OperationContext
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.types.operand_type import OperandType
from tightship.graph import DType

_OPERATORS = {
    OperationType.EQUAL: ("Equal", False),
    OperationType.GREATER: ("Greater", False),
    OperationType.GREATER_EQUAL: ("GreaterOrEqual", False),
    OperationType.LESS: ("Less", False),
    OperationType.LESS_EQUAL: ("LessOrEqual", False),
    OperationType.NOT_EQUAL: ("Equal", True),
}
"""ONNX operator of each comparison, and whether its result is negated."""
_EQUALITIES = frozenset({OperationType.EQUAL, OperationType.NOT_EQUAL})
_TYPES = NUMBERS | {OperandType.TENSOR_INT32, OperandType.TENSOR_BOOL8}
_INT32_NUMBER = 6  # argument of `Cast`


def compare(context: OperationContext) -> Tensor:
    """Translate EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, with broadcasting."""
    context.check_count(2)
    if context.output_type.operand_type != OperandType.TENSOR_BOOL8:
        raise context.broken("its output must be a TENSOR_BOOL8")
    kind = OperationType(context.operation.operation_type)
    tensors = [context.tensor(position, _TYPES) for position in (0, 1)]
    if context.type_of(0).operand_type != context.type_of(1).operand_type:
        raise context.broken("its operands differ in type")
    emit = context.emission.emit
    if context.type_of(0).operand_type in NUMBERS:
        tensors = [context.real(position) for position in (0, 1)]
    elif tensors[0].dtype is DType.BOOL and kind not in _EQUALITIES:  # false is below true
        tensors = [emit("Cast", [t], t.shape, DType.INT32, to=_INT32_NUMBER) for t in tensors]
    operator, is_opposite = _OPERATORS[kind]
    shape = broadcast(context, *tensors)
    made = emit(operator, tensors, shape, DType.BOOL)
    return emit("Not", [made], shape) if is_opposite else made
