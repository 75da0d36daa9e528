"""Checks the operand shapes of ONNX's Attention."""

from collections.abc import Sequence

from tightship.graph.layout import Dimension, Shape
from tightship.graph.recurrent_shapes import agree


def attention_misfit(
    names: Sequence[str], shapes: Sequence[Shape | None], heads: tuple[int | None, int | None]
) -> str | None:
    """Return why operands do not fit each other; None if known lengths allow them.

    Args:
        names: Names of queries, keys, values, mask, past keys and values, and lengths; empty if
            left out.
        shapes: Shapes of these; None for unknown rank.
        heads: `q_num_heads` and `kv_num_heads`, for operands of rank three.
    """
    operands = list(zip(names, shapes, strict=True))
    apart: list[Shape] = []
    for (name, shape), given in zip(operands[:3], (heads[0], heads[1], heads[1]), strict=True):
        if shape is None:
            return None
        found = _apart(shape, given)
        if found is None:
            return f"`{name}` has the shape {_text(shape)}, which is not one of {given} heads"
        apart.append(found)
    (batch, count, steps, length), (_, shared, new, _), (*_, width) = apart
    past = shapes[4] if len(shapes) > 4 and shapes[4] is not None else None
    before: Dimension = 0
    if past is not None:
        before = past[2] if len(past) == 4 else None
    total = new + before if isinstance(new, int) and isinstance(before, int) else None
    if isinstance(count, int) and isinstance(shared, int) and (shared < 1 or count % shared):
        return f"`{names[0]}` has {count} heads, which {shared} of `{names[1]}` do not divide"
    wanted: tuple[Shape | None, ...] = (
        apart[0], (batch, shared, new, length), (batch, shared, new, width), None,
        (batch, shared, before, length), (batch, shared, before, width), (batch,),
    )  # fmt: skip
    for name, is_now, needed in zip(names, [*apart, *shapes[3:]], wanted, strict=False):
        if is_now is not None and needed is not None and not agree(is_now, needed):
            return f"`{name}` has the shape {_text(is_now)}, where {_text(needed)} is needed"
    mask = shapes[3] if len(shapes) > 3 else None
    if mask is not None and not _spreads(mask, (batch, count, steps, total)):
        return (
            f"the mask `{names[3]}` of shape {_text(mask)} does not spread over "
            f"{_text((batch, count, steps, total))}"
        )
    return None


def _apart(shape: Shape, heads: int | None) -> Shape | None:
    """Return a shape as batch, heads, steps and length; None if heads do not divide it."""
    if len(shape) == 4:
        return shape
    if len(shape) != 3 or heads is None or heads < 1:
        return None
    batch, steps, wide = shape
    if not isinstance(wide, int):
        return batch, heads, steps, None
    return None if wide % heads else (batch, heads, steps, wide // heads)


def _spreads(mask: Shape, whole: Shape) -> bool:
    """Whether a mask broadcasts to the scores; it may have fewer keys."""
    if not 1 <= len(mask) <= len(whole):
        return False
    *outer, keys = zip(mask, whole[-len(mask) :], strict=True)
    narrower = isinstance(keys[0], int) and isinstance(keys[1], int) and keys[0] <= keys[1]
    return (narrower or agree(keys[:1], keys[1:])) and all(
        found == 1 or agree((found,), (wanted,)) for found, wanted in outer
    )


def _text(shape: Sequence[Dimension]) -> str:
    return "[" + ", ".join("?" if length is None else str(length) for length in shape) + "]"
