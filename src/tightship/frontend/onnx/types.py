"""Types of values: TypeProto during inference, Value afterwards.

An empty TypeProto is an unknown type.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from onnx import TensorShapeProto, TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx.element import DTYPES, NUMBERS
from tightship.frontend.onnx.text import utf8
from tightship.graph import Dimension, DType, Shape, Value, element_count

ELEMENTS_MAX = 1 << 48
"""Most elements of a tensor: beyond any machine, but with a size that fits 63 bits."""

UNKNOWN = "?"
"""Name that paddle2onnx gives to every unknown dimension; not a symbol, as these may differ."""


def is_known(type_: TypeProto) -> bool:
    """Whether anything is known about a type."""
    return type_.WhichOneof("value") is not None


def is_tensor(type_: TypeProto) -> bool:
    """Whether a type is a dense tensor's with known element type."""
    return bool(type_.HasField("tensor_type") and type_.tensor_type.elem_type)


def tensor_type(dtype: DType, shape: Sequence[Dimension] | None) -> TypeProto:
    """Return the type of a dense tensor; `shape` is None for an unknown rank."""
    return with_shape(NUMBERS[dtype], shape)


@lru_cache(maxsize=4096)
def constant_type(dtype: DType, shape: tuple[int, ...]) -> TypeProto:
    """Return the type of a constant; equal ones are the same object and must not be changed."""
    return tensor_type(dtype, shape)


def element_name(number: int) -> str:
    """Return the name in messages of an element type of `TensorProto.DataType`."""
    dtype = DTYPES.get(number)
    return dtype.value if dtype is not None else f"number {number}"


def with_shape(element_number: int, shape: Sequence[Dimension] | None) -> TypeProto:
    """Return the type of a dense tensor with an element type of `TensorProto.DataType`."""
    type_ = TypeProto()
    type_.tensor_type.elem_type = element_number
    if shape is not None:
        type_.tensor_type.shape.SetInParent()
        for dimension in shape:
            added = type_.tensor_type.shape.dim.add()
            if isinstance(dimension, int):
                added.dim_value = dimension
            elif dimension is not None:
                added.dim_param = dimension
    return type_


def sequence_of(element: TypeProto) -> TypeProto:
    """Return the type of a sequence."""
    type_ = TypeProto()
    type_.sequence_type.elem_type.CopyFrom(element)
    return type_


def shape_of(type_: TypeProto) -> Shape | None:
    """Return the shape of a tensor type; None if the rank is unknown."""
    tensor = type_.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple([_dimension(dimension) for dimension in tensor.shape.dim])


def sound(type_: TypeProto) -> TypeProto:
    """Return the type with negative dimensions as unknown.

    Some writers mark unknown dimensions so, and inference finds them in branches that never run.
    """
    if any(dimension.dim_value < 0 for dimension in type_.tensor_type.shape.dim):
        return with_shape(type_.tensor_type.elem_type, shape_of(type_))
    return type_


def static_shape_of(type_: TypeProto) -> tuple[int, ...] | None:
    """Return the shape of a tensor type if every dimension is a number."""
    shape = shape_of(type_)
    if shape is None:
        return None
    static = tuple([dimension for dimension in shape if isinstance(dimension, int)])
    return static if len(static) == len(shape) else None


def values_of(types: Mapping[str, TypeProto]) -> dict[str, Value]:
    """Return values of these types; only dense tensors have a dtype and a shape.

    Raises:
        GraphError: A tensor has more than `ELEMENTS_MAX` elements.
    """
    different = {id(type_): type_ for type_ in types.values()}
    read = {key: _dtype_and_shape(type_) for key, type_ in different.items()}
    for key, (_, shape) in read.items():
        if element_count([d for d in shape or () if isinstance(d, int) and d]) > ELEMENTS_MAX:
            name = next(name for name, type_ in types.items() if id(type_) == key)
            raise GraphError(
                f"Value `{name}` has the shape {list(shape or ())}; a tensor has at most "
                f"{ELEMENTS_MAX} elements."
            )
    return {name: Value(name, *read[id(type_)]) for name, type_ in types.items()}


def _dtype_and_shape(type_: TypeProto) -> tuple[DType | None, Shape | None]:
    if not type_.HasField("tensor_type"):
        return None, None
    return DTYPES.get(type_.tensor_type.elem_type), shape_of(type_)


def bind(type_: TypeProto, symbols: Mapping[str, int]) -> TypeProto:
    """Return a declared type made sound, with bound symbols replaced by their numbers."""
    if not type_.HasField("tensor_type"):
        return type_
    shape = shape_of(type_)
    if shape is None:
        return type_
    bound = [symbols.get(d, d) if isinstance(d, str) else d for d in shape]
    return with_shape(type_.tensor_type.elem_type, bound)


def merge(
    first: TypeProto, second: TypeProto, pick: Callable[[Dimension, Dimension], Dimension]
) -> TypeProto:
    """Merge two tensor types of one element type; `pick` chooses each dimension.

    If only one has a shape, or the ranks differ, `first` is returned.
    """
    left, right = shape_of(first), shape_of(second)
    if left is None or right is None or len(left) != len(right):
        return first
    dimensions = [pick(a, b) for a, b in zip(left, right, strict=True)]
    return with_shape(first.tensor_type.elem_type, dimensions)


def refine(inferred: TypeProto, declared: TypeProto) -> TypeProto:
    """Complete an inferred type by the declared one.

    The caller must check that the element types agree.
    """
    if not is_known(inferred):
        return declared
    if not (is_tensor(inferred) and is_tensor(declared)):
        return inferred
    shape = shape_of(inferred)
    if shape is None:
        return with_shape(inferred.tensor_type.elem_type, shape_of(declared))
    if all(isinstance(dimension, int) for dimension in shape):
        return inferred
    return merge(inferred, declared, _more_exact)


def widen(first: TypeProto, second: TypeProto) -> TypeProto:
    """Return the most exact type of values of both; unknown if their kinds differ."""
    if first == second:
        return first
    if first.HasField("sequence_type") and second.HasField("sequence_type"):
        return sequence_of(widen(first.sequence_type.elem_type, second.sequence_type.elem_type))
    if not (is_tensor(first) and is_tensor(second)):
        return TypeProto()
    number = first.tensor_type.elem_type
    if number != second.tensor_type.elem_type:
        return TypeProto()
    left, right = shape_of(first), shape_of(second)
    if left is None or right is None or len(left) != len(right):
        return with_shape(number, None)
    return merge(first, second, lambda a, b: a if a == b else None)


def _more_exact(inferred: Dimension, declared: Dimension) -> Dimension:
    if isinstance(inferred, int) or declared is None:
        return inferred
    return declared if isinstance(declared, int) or inferred is None else inferred


def _dimension(dimension: TensorShapeProto.Dimension) -> Dimension:
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    symbol = utf8(dimension.dim_param, "symbol")
    return None if symbol in ("", UNKNOWN) else symbol
