"""Operations that rearrange elements."""

import math

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.given import reshaped
from tightship.driver.nnapi.operation_context import NUMBERS, OperationContext
from tightship.driver.types.operand_type import OperandType
from tightship.graph import element_count

_ANY = NUMBERS | {OperandType.TENSOR_INT32}


def reshape(context: OperationContext) -> Tensor:
    """Translate RESHAPE; one length may be -1 and follows from the others."""
    context.check_count(2)
    tensor = context.tensor(0, _ANY)
    context.check_output_type(context.type_of(0))
    context.check_same_quantization()
    if not context.is_constant(1) and (declared := context.declared_shape) is not None:
        return _reshaped(context, tensor, declared)
    shape = context.known_lengths(1)
    count, named = element_count(tensor.shape), math.prod(each for each in shape if each != -1)
    open_count = shape.count(-1)
    is_fit = count % named == 0 if named > 0 and open_count else count == named
    if open_count > 1 or any(each < -1 or each == 0 for each in shape) or not is_fit:
        raise context.broken(
            f"{context.name_of(1)} is {list(shape)}; {context.name_of(0)} has {count} elements, "
            "which do not fit"
        )
    found = tuple(count // named if each == -1 else each for each in shape)
    return context.emission.emit("Reshape", [tensor, context.emission.lengths(found)], found)


def _reshaped(context: OperationContext, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape by lengths known only at run time, to the declared shape."""
    lengths = context.tensor(1, {OperandType.TENSOR_INT32})
    if lengths.shape != (len(shape),) or element_count(tensor.shape) != element_count(shape):
        raise context.broken(
            f"{context.name_of(1)} has dimensions {list(lengths.shape)} and {context.name_of(0)} "
            f"{list(tensor.shape)}, which do not fit the declared output, {list(shape)}"
        )
    return reshaped(context.emission, tensor, lengths, shape)


def concatenation(context: OperationContext) -> Tensor:
    """Translate CONCATENATION of tensors of one type; quantized ones may differ in scale."""
    last = context.input_count - 1
    context.check_count(max(last, 1) + 1)
    context.check_output_type(context.type_of(0))
    tensors = [context.tensor(position, _ANY) for position in range(last)]
    axis, first = context.number(last), tensors[0].shape
    if not -len(first) <= axis < len(first):
        raise context.broken(
            f"{context.name_of(last)} is axis {axis}; the inputs have {len(first)} axes"
        )
    axis %= len(first)
    for position, tensor in enumerate(tensors):
        others = tensor.shape[:axis] + tensor.shape[axis + 1 :]
        if len(tensor.shape) != len(first) or others != first[:axis] + first[axis + 1 :]:
            raise context.broken(
                f"{context.name_of(position)} has dimensions {list(tensor.shape)}, which cannot be "
                f"joined with {list(first)} along axis {axis}"
            )
    shape = (*first[:axis], sum(each.shape[axis] for each in tensors), *first[axis + 1 :])
    types = {context.type_of(position).operand_type for position in range(last)}
    scales = {_quantization(context, position) for position in range(last)}
    output = context.output_type
    if len(types) == 1 and scales == {(output.scale, output.zero_point)}:
        return context.emission.emit("Concat", tensors, shape, axis=axis)
    reals = [context.real(position) for position in range(last)]
    return context.stored(context.emission.emit("Concat", reals, shape, axis=axis))


def _quantization(context: OperationContext, position: int) -> tuple[float, int]:
    value_type = context.type_of(position)
    return value_type.scale, value_type.zero_point
