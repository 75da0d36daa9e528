"""Shapes of inputs from what a caller gives: shapes by input, lengths by dimension, or both."""

from collections.abc import Mapping, Sequence

from tightship.engine.compile.compile_graph import Declared
from tightship.engine.compile.input_shapes import shape_or_length
from tightship.errors import InputError
from tightship.graph import Shape
from tightship.graph.length_expression import evaluate, names_in

Given = Mapping[str, Sequence[int] | int]
"""Shapes by the names of inputs, and lengths by the names of dimensions."""


def input_shapes(declared: Declared, given: Given | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes that are given, with those of inputs whose dimensions are named.

    `{"batch": 1, "sequence": 8}` gives a shape to every input that has one of these dimensions; one
    declared as `past + sequence` is the sum. The command line writes a length as a shape of one
    axis, so such a shape is a dimension's if no input has the name.

    Args:
        declared: Inputs as the model's file declares them.
        given: Shapes by input, lengths by dimension, or both.

    Raises:
        InputError: A name is neither an input's nor a dimension's, two lengths contradict each
            other, or an input has a named dimension and another one that stays open.
    """
    shapes, named = divided(declared, given or {})
    lengths = {**_lengths_of(declared, shapes), **named}
    _check_named(declared, shapes, named)
    for name, shape in shapes.items():
        _check_computed(name, shape, declared.get(name), lengths)
    if named:
        for name, wanted in declared.items():
            if name not in shapes and _names(wanted) & named.keys():
                shapes[name] = _shape_of(name, wanted or (), lengths, named)
    return shapes


def divided(declared: Declared, given: Given) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Divide what is given into shapes by input and lengths by dimension, without checks."""
    shapes: dict[str, tuple[int, ...]] = {}
    named: dict[str, int] = {}
    for name, shape in given.items():
        plain = shape_or_length(shape)
        if isinstance(plain, int):
            named[name] = plain
        elif name not in declared and len(plain) == 1:
            named[name] = plain[0]
        else:
            shapes[name] = plain
    return shapes, named


def named_dimensions(declared: Declared) -> frozenset[str]:
    """Return the names that lengths of the inputs have, or are computed from."""
    return frozenset[str]().union(*map(_names, declared.values()))


def _names(shape: Shape | None) -> frozenset[str]:
    texts = [length for length in shape or () if isinstance(length, str)]
    return frozenset(texts).union(*map(names_in, texts))


def _lengths_of(declared: Declared, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the lengths of dimensions in the shapes that are given.

    Raises:
        InputError: Two inputs give a dimension different lengths; names both.
    """
    lengths: dict[str, int] = {}
    sources: dict[str, str] = {}
    for name, shape in shapes.items():
        for dimension, length in zip(declared.get(name) or (), shape, strict=False):
            if not isinstance(dimension, str) or names_in(dimension) != {dimension}:
                continue
            if lengths.setdefault(dimension, length) != length:
                first = sources[dimension]
                raise InputError(
                    f"Dimension `{dimension}` is {lengths[dimension]} in the shape of input "
                    f"`{first}`, {_text(shapes[first])}, but {length} in that of `{name}`, "
                    f"{_text(shape)}; give both the same."
                )
            sources.setdefault(dimension, name)
    return lengths


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _check_named(
    declared: Declared, shapes: Mapping[str, tuple[int, ...]], named: Mapping[str, int]
) -> None:
    known = named_dimensions(declared)
    for name, length in named.items():
        if name in declared and name not in known:
            raise InputError(
                f"Input `{name}` was given the shape {length}; a shape is a list of whole numbers, "
                f"`[{length}]`, and no dimension has that name."
            )
        if name not in known:
            inputs = ", ".join(f"`{each}`" for each in declared) or "none"
            dimensions = ", ".join(f"`{each}`" for each in sorted(known)) or "none"
            raise InputError(
                f"The model has no input and no dimension `{name}`; its inputs are: {inputs}; its "
                f"named dimensions: {dimensions}."
            )
        if length < 0:
            raise InputError(f"Dimension `{name}` was given the length {length}; the least is 0.")
    for name, length in _lengths_of(declared, shapes).items():
        if named.get(name, length) != length:
            source = next(each for each in shapes if name in (declared.get(each) or ()))
            raise InputError(
                f"Dimension `{name}` was given the length {named[name]}, but it is {length} in the "
                f"shape of input `{source}`, {_text(shapes[source])}; give one of them, or the "
                "same."
            )


def _check_computed(
    name: str, shape: tuple[int, ...], wanted: Shape | None, lengths: Mapping[str, int]
) -> None:
    """Check the lengths of a shape that the file declares as expressions of others."""
    for axis, (dimension, length) in enumerate(zip(wanted or (), shape, strict=False)):
        if not isinstance(dimension, str):
            continue
        value = evaluate(dimension, lengths)
        if value not in (None, length) and names_in(dimension) != {dimension}:
            known = ", ".join(f"`{each}` {lengths[each]}" for each in sorted(names_in(dimension)))
            raise InputError(
                f"Input `{name}` was given the length {length} in dimension {axis}, which the file "
                f"declares as `{dimension}`: that is {value} with {known}."
            )


def _shape_of(
    name: str, wanted: Shape, lengths: Mapping[str, int], named: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the shape of an input of which a dimension is named."""
    found: list[int] = []
    for axis, dimension in enumerate(wanted):
        length = evaluate(dimension, lengths) if isinstance(dimension, str) else dimension
        if length is None:
            given = dict(named)
            missing = names_in(dimension) - lengths.keys() if isinstance(dimension, str) else ()
            given |= dict.fromkeys(sorted(missing), 1)
            raise InputError(
                f"Dimension {axis} of input `{name}`, `{dimension or '?'}`, has no length; give "
                + (f"it too, as in `shapes={given}`." if missing else "the input's whole shape.")
            )
        if length < 0:
            raise InputError(
                f"Dimension {axis} of input `{name}`, `{dimension}`, would be {length}; give "
                "lengths for which it is at least 0."
            )
        found.append(length)
    return tuple(found)
