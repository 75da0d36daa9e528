"""Types of values, as TypeProto while they are inferred and as Value afterwards.

A TypeProto with nothing set is a type that nobody knows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from onnx import TensorShapeProto, TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx.element import DTYPES, NUMBERS
from tightship.frontend.onnx.text import utf8
from tightship.graph import Dimension, DType, Shape, Value, element_count

ELEMENTS_MAX = 1 << 48
"""Elements that a tensor can have: more than any machine holds, and few enough to count bytes."""

UNKNOWN = "?"
"""What paddle2onnx calls every dimension it does not know; no symbol, for they differ."""


def is_known(type_: TypeProto) -> bool:
    """Whether anything is known about a type."""
    return type_.WhichOneof("value") is not None


def is_tensor(type_: TypeProto) -> bool:
    """Whether a type is a dense tensor's, its element type known."""
    return bool(type_.HasField("tensor_type") and type_.tensor_type.elem_type)


def tensor_type(dtype: DType, shape: Sequence[Dimension] | None) -> TypeProto:
    """The type of a dense tensor; no shape where the rank is not known."""
    return with_shape(NUMBERS[dtype], shape)


@lru_cache(maxsize=4096)
def constant_type(dtype: DType, shape: tuple[int, ...]) -> TypeProto:
    """The type of a constant; equal ones have the same object, which none may change."""
    return tensor_type(dtype, shape)


def element_name(number: int) -> str:
    """What messages call an element type of `TensorProto.DataType`."""
    dtype = DTYPES.get(number)
    return dtype.value if dtype is not None else f"number {number}"


def with_shape(element_number: int, shape: Sequence[Dimension] | None) -> TypeProto:
    """The type of a dense tensor with an element type of `TensorProto.DataType`."""
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
    """The type of a sequence."""
    type_ = TypeProto()
    type_.sequence_type.elem_type.CopyFrom(element)
    return type_


def shape_of(type_: TypeProto) -> Shape | None:
    """The shape of a tensor type; None where it has none."""
    tensor = type_.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple([_dimension(dimension) for dimension in tensor.shape.dim])


def sound(type_: TypeProto) -> TypeProto:
    """The type with each dimension below zero unknown.

    Some writers mark an unknown dimension so, and inference gives it in a branch that
    never runs.
    """
    if any(dimension.dim_value < 0 for dimension in type_.tensor_type.shape.dim):
        return with_shape(type_.tensor_type.elem_type, shape_of(type_))
    return type_


def static_shape_of(type_: TypeProto) -> tuple[int, ...] | None:
    """The shape of a tensor type where every dimension is a number."""
    shape = shape_of(type_)
    if shape is None:
        return None
    static = tuple([dimension for dimension in shape if isinstance(dimension, int)])
    return static if len(static) == len(shape) else None


def values_of(types: Mapping[str, TypeProto]) -> dict[str, Value]:
    """Values of these types; only dense tensors have a dtype and a shape.

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
    """A declared type made sound, each bound symbol replaced by its number."""
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
    """Two tensor types of one element type as one, `pick` choosing each dimension.

    Where only one has a shape, or the ranks differ, `first` is returned.
    """
    left, right = shape_of(first), shape_of(second)
    if left is None or right is None or len(left) != len(right):
        return first
    dimensions = [pick(a, b) for a, b in zip(left, right, strict=True)]
    return with_shape(first.tensor_type.elem_type, dimensions)


def refine(inferred: TypeProto, declared: TypeProto) -> TypeProto:
    """What was inferred, completed by what the model declares.

    A declared element type that differs is left to the caller.
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
    """The most exact type that holds values of both; unknown where their kinds differ."""
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
