"""Names of dimensions in a prepared file: lengths that its programs have by name."""

from collections.abc import Mapping, Sequence

from tightship.engine.compile.input_shapes import Key
from tightship.engine.stored import fields
from tightship.engine.stored.fields import MalformedError
from tightship.graph import Shape

Declared = Mapping[str, Shape | None]
"""Lengths of inputs as the model's file declares them; None for an unknown rank."""


def dimensions_json(declared: Declared, keys: Sequence[Key]) -> dict[str, object]:
    """Return the declared lengths of those inputs that programs have shapes of."""
    names = {name for key in keys for name, _ in key}
    return {
        name: None if shape is None else list(shape)
        for name, shape in declared.items()
        if name in names
    }


def read_dimensions(value: object, keys: Sequence[Key]) -> dict[str, Shape | None] | None:
    """Read them; None for a file of an earlier version, which has none.

    Raises:
        MalformedError: They are not of the inputs of the programs.
    """
    if value is None:
        return None
    if type(value) is not dict:
        raise MalformedError(f"{value!r:.40} is not an object")
    found = {fields.text(name): _shape(shape) for name, shape in value.items()}
    for key in keys:
        shapes = dict(key)
        for name, declared in found.items():
            if name not in shapes:
                raise MalformedError(f"`{name}` has dimensions, but is not an input")
            if declared is not None and not _fits(declared, shapes[name]):
                raise MalformedError(f"the dimensions of `{name}` are not those of its programs")
    return found


def _shape(value: object) -> Shape | None:
    return None if value is None else tuple(fields.each(value, _length))


def _length(value: object) -> int | str | None:
    if value is None or type(value) is str:
        return value
    return fields.integer(value)


def _fits(declared: Shape, shape: tuple[int, ...]) -> bool:
    return len(declared) == len(shape) and all(
        length == other
        for length, other in zip(declared, shape, strict=True)
        if isinstance(length, int)
    )


def lengths_of(declared: Declared, key: Key) -> dict[str, int]:
    """Return the lengths of named dimensions in the shapes of a program."""
    from tightship.graph.length_expression import names_in  # most processes give shapes by input

    return {
        dimension: length
        for name, shape in key
        for dimension, length in zip(declared.get(name) or (), shape, strict=False)
        if isinstance(dimension, str) and names_in(dimension) == {dimension}
    }


def with_lengths(declared: Declared, key: Key, lengths: Mapping[str, int]) -> Key:
    """Return the shapes of a program, changed to other lengths of named dimensions."""
    from tightship.graph.length_expression import evaluate

    known = {**lengths_of(declared, key), **lengths}

    def changed(dimension: int | str | None, length: int) -> int:
        value = evaluate(dimension, known) if isinstance(dimension, str) else None
        return length if value is None else value

    return tuple(
        (name, tuple(map(changed, declared.get(name) or (None,) * len(shape), shape)))
        for name, shape in key
    )
