"""Operand rules of attention, rotary embeddings and recurrent layers."""

from collections.abc import Callable

from tightship.graph.attention_shapes import attention_misfit
from tightship.graph.operands.operands import MisfitError, Operands, text
from tightship.graph.recurrent_shapes import DIRECTIONS, agree, recurrent_shapes

ATTENTION_INPUTS = 7
WEIGHTS_OF_STATE = 2


def rotary(at: Operands) -> None:
    """Require a column of the tables for each rotated pair, and a row for each position."""
    x = at.shape(0)
    if len(x) not in (3, 4):
        at.refuse(0, "3 or 4 dimensions are needed")
    wide, heads = x[-1], at.integer("num_heads", 0)
    length = wide if len(x) == 4 else wide // heads if isinstance(wide, int) and heads else None
    rotated = at.integer("rotary_embedding_dim", 0) or length
    if isinstance(rotated, int) and rotated % 2:
        at.refuse(0, f"{rotated} elements of a head cannot be rotated in pairs")
    half = rotated // 2 if isinstance(rotated, int) else None
    steps = x[-2] if len(x) == 4 else x[1]
    for place in (1, 2):
        at.require(place, (None, half) if at.has(3) else (x[0], steps, half))
    if (cosines := at.find(1)) is not None:
        at.require(2, cosines)
    at.require(3, (x[0], steps))


def attention(at: Operands) -> None:
    names = list(at.names[:ATTENTION_INPUTS])
    if len(names) < 3:
        return
    heads = [at.attributes.get(f"{side}_num_heads") for side in ("q", "kv")]
    counts = [each if isinstance(each, int) else None for each in heads]
    why = attention_misfit(names, [at.find(p) for p in range(len(names))], (counts[0], counts[1]))
    if why is not None:
        raise MisfitError(why)


def recurrent(operator: str) -> Callable[[Operands], None]:
    def rule(at: Operands) -> None:
        at.require_rank(0, 3)
        at.require_rank(WEIGHTS_OF_STATE, 3)
        x, hidden = at.shape(0), at.shape(WEIGHTS_OF_STATE)[2]
        if not isinstance(hidden, int):
            return
        stated = at.integer("hidden_size", hidden)
        if stated != hidden:
            name, shape = at.names[WEIGHTS_OF_STATE], at.shape(WEIGHTS_OF_STATE)
            raise MisfitError(f"hidden_size is {stated}, but `{name}` has the shape {text(shape)}")
        directions = DIRECTIONS[str(at.attributes.get("direction", "forward"))]
        by_batch = bool(at.integer("layout", 0))
        wanted = recurrent_shapes(operator, directions, x, hidden, by_batch=by_batch)
        for place, shape in enumerate(wanted.inputs[: len(at.names)]):
            at.require(place, shape)

    return rule


def causal_conv(at: Operands) -> None:
    x, weights = at.shape(0, 2), at.shape(1, 2)
    at.require(0, (x[0], weights[0], *x[2:]))
    at.require(2, (weights[0],))
    past = at.find(3)
    if past is not None and not agree(past[:2], x[:2]):
        at.refuse(3, f"{text((*x[:2], None))} is needed")
