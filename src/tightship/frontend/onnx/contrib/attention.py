"""Attention operators of exported transformers, on ONNX's Attention and RotaryEmbedding."""

from dataclasses import dataclass

import numpy as np

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation, Value

HEADS_FIRST = [0, 2, 1, 3]
FLOAT = 1


@dataclass(frozen=True, slots=True)
class _Heads:
    """Query, keys and values of four axes, and past ones or empty names."""

    query: str
    key: str
    value: str
    past_key: str = ""
    past_value: str = ""


def _apart(s: Pattern, x: str, heads: int) -> str:
    """Reshape [batch, steps, heads x length] to [batch, heads, steps, length]."""
    return s("Transpose", s("Reshape", x, s.constant([0, 0, heads, -1])), perm=HEADS_FIRST)


def _attended(
    s: Pattern, heads: _Heads, mask: str, *, is_causal: bool, present: bool
) -> tuple[str, ...]:
    """Write an Attention; return heads side by side again, and the attended keys and values."""
    outputs = s.many(
        "Attention", 3 if present else 1, heads.query, heads.key, heads.value, mask,
        heads.past_key, heads.past_value, is_causal=int(is_causal), **_scale(s),
    )  # fmt: skip
    side = s("Transpose", outputs[0], perm=HEADS_FIRST)
    return s("Reshape", side, s.constant([0, 0, -1])), *outputs[1:]


def _scale(s: Pattern) -> dict[str, float]:
    scale = s.number("scale")
    return {"scale": scale} if scale else {}


def _keys(s: Pattern, key: str, past: str) -> str:
    """Return the number of keys, past ones included, as a scalar."""
    count = s("Squeeze", s("Shape", key, start=2, end=3))
    return s("Add", count, s("Squeeze", s("Shape", past, start=2, end=3))) if past else count


def _mask(s: Pattern, heads: _Heads, name: str, bias: str) -> str:
    """Return the bias of the scores, of four axes; an empty name if there is none.

    `name` selects keys: by a number for each, for each pair of key and query, by lengths of rows,
    or by their ends followed by their starts.
    """
    added, fill = [], s.number("mask_filter_value")
    if name:
        kept = _kept(s, heads, name)
        away = s("Sub", s.constant(1, np.float32), kept)
        added.append(s("Mul", away, s.constant(fill, np.float32)))
    if bias:
        added.append(bias)
    return s("Add", *added) if len(added) == 2 else next(iter(added), "")


def _kept(s: Pattern, heads: _Heads, name: str) -> str:
    """Return 1 for selected keys, else 0, with four axes."""
    shape = s.shape(name)
    if len(shape) in (2, 3):
        axes = [1, 2] if len(shape) == 2 else [1]
        return s("Unsqueeze", s("Cast", name, to=FLOAT), s.constant(axes))
    if len(shape) != 1:
        raise s.refusal(f"a mask of rank {len(shape)}", "it may have one, two or three axes")
    keys = _keys(s, heads.key, heads.past_key)
    index = s("Range", s.constant(0), keys, s.constant(1))
    index = s("Unsqueeze", s("Cast", index, to=6), s.constant([0, 1, 2]))
    batch = s.dimension(s.input(0), 0)
    if shape[0] == batch:
        inside = s("Less", index, s("Unsqueeze", name, s.constant([1, 2, 3])))
    elif isinstance(batch, int) and shape[0] == 2 * batch:
        pairs = s("Unsqueeze", s("Reshape", name, s.constant([2, -1])), s.constant([2, 3, 4]))
        end, start = (s("Gather", pairs, s.constant(part)) for part in (0, 1))
        inside = s("And", s("Less", index, end), s("GreaterOrEqual", index, start))
    else:
        raise s.refusal(
            f"a mask of {shape[0]} numbers for a batch of {batch}",
            "there may be one number, or an end and a start, for each row",
        )
    return s("Cast", inside, to=FLOAT)


def attention(s: Pattern) -> None:
    """Decompose Attention: one matrix projects queries, keys and values; past ones are stacked."""
    count = s.count("num_heads")
    weights, bias, past = s.input(1), s.input(2), s.input(4)
    projected = s("MatMul", s.input(0), weights)
    if bias:
        projected = s("Add", projected, bias)
    sizes = [int(n) for n in s.numbers("qkv_hidden_sizes")] or [s.length(weights, 1) // 3] * 3
    parts = s.many("Split", 3, projected, s.constant(sizes), axis=-1)
    query, key, value = (_apart(s, part, count) for part in parts)
    old = [s("Gather", past, s.constant(index)) for index in (0, 1)] if past else ["", ""]
    heads = _Heads(query, key, value, *old)
    mask = _mask(s, heads, s.input(3), s.input(5))
    causal = bool(s.integer("unidirectional"))
    output, *present = _attended(s, heads, mask, is_causal=causal, present=s.wants(1))
    s.give(0, output)
    if present:
        stacked = [s("Unsqueeze", each, s.constant([0])) for each in present]
        s.give(1, s("Concat", *stacked, axis=0))


def multi_head_attention(s: Pattern) -> None:
    """Decompose MultiHeadAttention: operands are separate, or packed in a tensor of five axes."""
    query, key, value = _operands(s, s.count("num_heads"))
    heads = _Heads(query, key, value, s.input(6), s.input(7))
    mask = _mask(s, heads, s.input(4), s.input(5))
    causal = bool(s.integer("unidirectional"))
    wanted = s.wants(1) or s.wants(2)
    output, *present = _attended(s, heads, mask, is_causal=causal, present=wanted)
    s.give(0, output)
    for index, name in enumerate(present):
        s.give(index + 1, name)


def _operands(s: Pattern, count: int) -> list[str]:
    query, key, value, bias = (s.input(index) for index in range(4))
    if len(s.shape(query)) == 5:
        if bias:
            raise s.refusal("a bias for packed operands", "add it before packing")
        return [_packed(s, query, index) for index in range(3)]
    biases = _biases(s, bias, value) if bias else ["", "", ""]
    if not value:
        if bias:
            raise s.refusal("a bias for packed operands", "add it before packing")
        return [_apart(s, query, count), _packed(s, key, 0), _packed(s, key, 1)]
    found = []
    for name, shift in zip((query, key, value), biases, strict=True):
        shifted = s("Add", name, shift) if shift and len(s.shape(name)) == 3 else name
        found.append(shifted if len(s.shape(name)) == 4 else _apart(s, shifted, count))
    return found


def _packed(s: Pattern, name: str, index: int) -> str:
    """Extract a part of [batch, steps, heads, 2 or 3, length] as [batch, heads, steps, length]."""
    return s("Transpose", s("Gather", name, s.constant(index), axis=3), perm=HEADS_FIRST)


def _biases(s: Pattern, bias: str, value: str) -> list[str]:
    wide = s.length(s.input(0), 2)
    total = s.length(bias, 0)
    rank = len(s.shape(value)) if value else 0
    last = s.length(value, 2) if rank == 3 else total - 2 * wide
    return s.many("Split", 3, bias, s.constant([wide, total - wide - last, last]), axis=0)


def rotary_embedding(s: Pattern) -> None:
    """Decompose RotaryEmbedding: positions are one for each token, or that of the first."""
    x, positions, cosines, sines = (s.input(index) for index in range(4))
    flat = len(s.shape(x)) == 3
    rotated = s.integer("rotary_embedding_dim")
    count = s.integer("num_heads")
    if flat and not count:
        count = s.length(x, 2) // max(2 * s.length(cosines, 1), 1)
    if len(s.shape(positions)) == 1:
        positions = _counted(s, x, positions, axis=1 if flat else 2)
    attributes = {"interleaved": s.integer("interleaved"), "rotary_embedding_dim": rotated}
    if flat:
        attributes["num_heads"] = count
    s.give(0, s("RotaryEmbedding", x, cosines, sines, positions, **attributes))


def _counted(s: Pattern, x: str, first: str, axis: int) -> str:
    """Return the positions from the first on, for each row."""
    steps = s("Squeeze", s("Shape", x, start=axis, end=axis + 1))
    index = s("Add", s("Range", s.constant(0), steps, s.constant(1)), first)
    batch = s("Shape", x, start=0, end=1)
    rows = s("Concat", batch, s.constant([1]), axis=0)
    return s("Expand", s("Unsqueeze", index, s.constant([0])), rows)


_HEADS_AND_MASK: dict[str, Value] = {
    "num_heads": REQUIRED, "unidirectional": 0, "scale": 0.0, "mask_filter_value": -10000.0,
}  # fmt: skip
ATTENTION = {
    "Attention": Translation(
        attention,
        "input weights bias? mask_index? past? attention_bias? !past_sequence_length",
        "output present?",
        {**_HEADS_AND_MASK, "qkv_hidden_sizes": ()},
        only={"do_rotary": (0,), "past_present_share_buffer": (0,)},
        idle={"rotary_embedding_dim": "belongs to do_rotary"},
    ),
    "MultiHeadAttention": Translation(
        multi_head_attention,
        "query key? value? bias? key_padding_mask? attention_bias? past_key? past_value? "
        "!past_sequence_length !cache_indirection",
        "output present_key? present_value? !qk",
        _HEADS_AND_MASK,
    ),
    "RotaryEmbedding": Translation(
        rotary_embedding,
        "input position_ids cos_cache sin_cache",
        "output",
        {"interleaved": 0, "num_heads": 0, "rotary_embedding_dim": 0},
        only={"is_packed_batching": (0,), "scale": (1.0,)},
    ),
}
"""Translations by operator."""
