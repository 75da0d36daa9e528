"""Input shapes to load a model with if its file leaves lengths open and its caller names none."""

from collections.abc import Iterator, Mapping, Sequence

from tightship.engine.compile.compile_graph import Declared, ModelSource
from tightship.engine.stored.container import holds_prepared
from tightship.graph import Dimension
from tightship.graph.length_expression import evaluate, names_in
from tightship.loading.input_shapes import Given, divided
from tightship.loading.opening import open_model

LENGTHS = (
    *((1, 64), (1, 1), (1, 2), (1, 16), (1, 224), (1, 384), (1, 512)),
    *((2, 2), (16, 16), (64, 64), (96, 96)),
)
"""Pairs of a batch and a length for all other open axes; those that fit most models come first."""
RANKS = (0, 1, 2, 3, 4)
"""Ranks to try for inputs of any rank; 0 names no shape, as for inputs that are not tensors."""

Shapes = dict[str, tuple[int, ...]]


def first_shapes(model: ModelSource, given: Given) -> Iterator[Shapes]:
    """Yield shapes to try in turn; only loading tells which of them fit the model's operators.

    Yield none for a prepared model, which has the shapes that it was prepared for.

    Args:
        model: Model, as for `load`.
        given: Shapes and lengths that the caller names, which hold in all yielded ones.

    Raises:
        FormatError, InputError: The model cannot be read.
    """
    if not holds_prepared(model):
        yield from shapes_of(open_model(model).declared, given)


def shapes_of(declared: Declared, given: Given) -> Iterator[Shapes]:
    """Yield shapes to try for inputs as a file declares them."""
    known, named = divided(declared, given)
    fixed = _symbols(declared, known) | named
    batches = {shape[0] for shape in declared.values() if shape is not None and len(shape) > 1}
    has_any_rank = any(declared[name] is None for name in declared.keys() - known.keys())
    for rank in RANKS if has_any_rank else RANKS[:1]:
        for batch, length in LENGTHS:
            symbols = {each: batch for each in batches if isinstance(each, str)} | fixed
            found = dict(known)
            for name in declared.keys() - known.keys():
                shape = declared[name]
                if shape is not None:
                    found[name] = _lengths(shape, symbols, batch, length)
                elif rank:
                    found[name] = (length,) if rank == 1 else (batch, *(rank - 1) * (length,))
            yield found


def _symbols(declared: Declared, known: Shapes) -> dict[str, int]:
    """Return the values of symbols that the caller's shapes determine."""
    return {
        symbol: length
        for name, lengths in known.items()
        for symbol, length in zip(declared.get(name) or (), lengths, strict=False)
        if isinstance(symbol, str)
    }


def _lengths(
    shape: Sequence[Dimension], symbols: Mapping[str, int], batch: int, length: int
) -> tuple[int, ...]:
    rest = [batch if len(shape) > 1 else length, *(len(shape) - 1) * [length]]
    return tuple(_length(each, symbols, other) for each, other in zip(shape, rest, strict=True))


def _length(dimension: Dimension, symbols: Mapping[str, int], other: int) -> int:
    """Return a dimension's length, or `other` if it is open."""
    if dimension is None or isinstance(dimension, int):
        return other if dimension is None else dimension
    assumed = dict.fromkeys(names_in(dimension), other)
    length = evaluate(dimension, {**assumed, **symbols})
    return other if length is None else length
