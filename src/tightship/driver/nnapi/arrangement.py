"""Operations that rearrange elements."""

import math

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.given import reshaped
from tightship.driver.nnapi.site import NUMBERS, Site
from tightship.driver.types.operand_type import OperandType
from tightship.graph import element_count

_ANY = NUMBERS | {OperandType.TENSOR_INT32}


def reshape(site: Site) -> Tensor:
    """Translate RESHAPE; one length may be -1 and follows from the others."""
    site.check_count(2)
    tensor = site.tensor(0, _ANY)
    site.check_output_type(site.type_of(0))
    site.check_same_quantization()
    if not site.is_constant(1) and (declared := site.declared_shape) is not None:
        return _reshaped(site, tensor, declared)
    shape = site.known_lengths(1)
    count, named = element_count(tensor.shape), math.prod(each for each in shape if each != -1)
    open_count = shape.count(-1)
    is_fit = count % named == 0 if named > 0 and open_count else count == named
    if open_count > 1 or any(each < -1 or each == 0 for each in shape) or not is_fit:
        raise site.broken(
            f"{site.name_of(1)} is {list(shape)}; {site.name_of(0)} has {count} elements, which "
            "do not fit"
        )
    found = tuple(count // named if each == -1 else each for each in shape)
    return site.emission.emit("Reshape", [tensor, site.emission.lengths(found)], found)


def _reshaped(site: Site, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape by lengths known only at run time, to the declared shape."""
    lengths = site.tensor(1, {OperandType.TENSOR_INT32})
    if lengths.shape != (len(shape),) or element_count(tensor.shape) != element_count(shape):
        raise site.broken(
            f"{site.name_of(1)} has dimensions {list(lengths.shape)} and {site.name_of(0)} "
            f"{list(tensor.shape)}, which do not fit the declared output, {list(shape)}"
        )
    return reshaped(site.emission, tensor, lengths, shape)


def concatenation(site: Site) -> Tensor:
    """Translate CONCATENATION of tensors of one type; quantized ones may differ in scale."""
    last = site.input_count - 1
    site.check_count(max(last, 1) + 1)
    site.check_output_type(site.type_of(0))
    tensors = [site.tensor(position, _ANY) for position in range(last)]
    axis, first = site.number(last), tensors[0].shape
    if not -len(first) <= axis < len(first):
        raise site.broken(f"{site.name_of(last)} is axis {axis}; the inputs have {len(first)} axes")
    axis %= len(first)
    for position, tensor in enumerate(tensors):
        others = tensor.shape[:axis] + tensor.shape[axis + 1 :]
        if len(tensor.shape) != len(first) or others != first[:axis] + first[axis + 1 :]:
            raise site.broken(
                f"{site.name_of(position)} has dimensions {list(tensor.shape)}, which cannot be "
                f"joined with {list(first)} along axis {axis}"
            )
    shape = (*first[:axis], sum(each.shape[axis] for each in tensors), *first[axis + 1 :])
    types = {site.type_of(position).operand_type for position in range(last)}
    scales = {_quantization(site, position) for position in range(last)}
    output = site.output_type
    if len(types) == 1 and scales == {(output.scale, output.zero_point)}:
        return site.emission.emit("Concat", tensors, shape, axis=axis)
    reals = [site.real(position) for position in range(last)]
    return site.stored(site.emission.emit("Concat", reals, shape, axis=axis))


def _quantization(site: Site, position: int) -> tuple[float, int]:
    value_type = site.type_of(position)
    return value_type.scale, value_type.zero_point
