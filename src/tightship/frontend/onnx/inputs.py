"""Binding of the caller's shapes to a model's inputs."""

from collections.abc import Iterable, Mapping, Sequence

from onnx import TypeProto

from tightship.errors import InputError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.types import ELEMENTS_MAX
from tightship.graph import Shape, element_count
from tightship.graph.length_expression import names_in


def bind_inputs(
    declared: Mapping[str, TypeProto],
    shapes: Mapping[str, Sequence[int]],
    *,
    allow_symbolic: bool,
) -> tuple[dict[str, TypeProto], dict[str, int]]:
    """Bind shapes to inputs; a symbol bound once is bound wherever it appears.

    Args:
        declared: Types of the inputs, by name.
        shapes: One length for each dimension of an input.
        allow_symbolic: Whether dimensions that no shape binds stay as they are.

    Returns:
        The types of the inputs, and the number that each symbol stands for.

    Raises:
        InputError: A name, rank or length does not fit, or a dimension stays free.
    """
    symbols: dict[str, int] = {}
    bound: dict[str, TypeProto] = {}
    for name, shape in shapes.items():
        bound[name] = _bind_input(name, shape, declared, symbols)
    inputs = {
        name: bound[name] if name in bound else types.bind(type_, symbols)
        for name, type_ in declared.items()
    }
    if not allow_symbolic:
        _refuse_free_dimensions(inputs)
    return inputs, symbols


def _bind_input(
    name: str, shape: Sequence[int], declared: Mapping[str, TypeProto], symbols: dict[str, int]
) -> TypeProto:
    if name not in declared:
        names = ", ".join(f"`{other}`" for other in declared) or "none"
        raise InputError(f"The model has no input `{name}`; its inputs are: {names}.")
    type_ = declared[name]
    if not types.is_tensor(type_):
        raise InputError(f"Input `{name}` is not a tensor, so it takes no shape.")
    given = tuple(int(length) for length in shape)
    wanted = types.shape_of(type_)
    if any(length < 0 for length in given):
        raise InputError(f"Input `{name}` was given the shape {_text(given)}; no length below 0.")
    if element_count([length or 1 for length in given]) > ELEMENTS_MAX:
        raise InputError(
            f"Input `{name}` was given the shape {_text(given)}; a tensor has at most "
            f"{ELEMENTS_MAX} elements."
        )
    if wanted is None:
        return types.with_shape(type_.tensor_type.elem_type, given)
    if len(given) != len(wanted):
        raise InputError(
            f"Input `{name}` has {len(wanted)} dimensions, {_text(wanted)}, but was given "
            f"{len(given)}; pass {_example(name, wanted)}."
        )
    for axis, (length, dimension) in enumerate(zip(given, wanted, strict=True)):
        known = symbols.setdefault(dimension, length) if isinstance(dimension, str) else dimension
        if known is not None and known != length:
            why = f"`{dimension}` is {known}" if isinstance(dimension, str) else f"it is {known}"
            raise InputError(
                f"Input `{name}` has the shape {_text(wanted)}, but dimension {axis} was given "
                f"as {length} where {why}."
            )
    return types.with_shape(type_.tensor_type.elem_type, given)


def _refuse_free_dimensions(inputs: Mapping[str, TypeProto]) -> None:
    free = {
        name: types.shape_of(type_)
        for name, type_ in inputs.items()
        if types.is_tensor(type_) and types.static_shape_of(type_) is None
    }
    if free:
        parts = [f"`{name}` {_text(shape)}" for name, shape in free.items()]
        options = [_example(name, shape) for name, shape in free.items()]
        given: dict[str, object] = {name: _example_lengths(each) for name, each in free.items()}
        named = _open_names(free.values())
        if len(free) > 1 and named is not None:
            options, given = [f"--shape {name}=1" for name in named], dict.fromkeys(named, 1)
        raise InputError(
            f"The shape of {len(free)} input(s) is not known: {', '.join(parts)}. Pass a length "
            f"for every dimension, such as {' '.join(options)}, or `shapes={given}`."
        )


def _open_names(shapes: Iterable[Shape | None]) -> list[str] | None:
    """Return the names that open dimensions have or are computed from; None if one has none."""
    names: dict[str, None] = {}
    for shape in shapes:
        for dimension in (None,) if shape is None else shape:
            if dimension is None:
                return None
            if isinstance(dimension, str):
                names.update(dict.fromkeys(sorted(names_in(dimension))))
    return list(names)


def _text(shape: Shape | None) -> str:
    if shape is None:
        return "of any rank"
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"


def _example(name: str, shape: Shape | None) -> str:
    return f"--shape {name}={'x'.join(map(str, _example_lengths(shape)))}"


def _example_lengths(shape: Shape | None) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else 1 for d in shape or (None,))
