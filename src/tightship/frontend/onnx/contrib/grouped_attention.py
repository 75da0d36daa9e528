"""GroupQueryAttention: several queries share a key; rows of a batch differ in length."""

from dataclasses import dataclass

import numpy as np

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation

INT64, HEADS_FIRST = 7, [0, 2, 1, 3]
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class _Rotary:
    """Tables of angles, and positions or an empty name."""

    cosines: str
    sines: str
    places: str
    interleaved: int


def grouped_attention(s: Pattern) -> None:
    """Decompose it: new keys follow each row's past ones; queries see keys up to their position."""
    query, key, value = _heads(s)
    steps = s("Squeeze", s("Shape", query, start=2, end=3))
    lengths = s("Add", s("Cast", s.input(5), to=INT64), s.constant(1))
    starts = s("Max", s("Sub", s("Reshape", lengths, s.constant([-1])), steps), s.constant(0))
    index = s("Range", s.constant(0), steps, s.constant(1))
    places = s("Add", s("Unsqueeze", starts, s.constant([1])), index)
    rotary = _Rotary(s.input(7), s.input(8), s.input(9), s.integer("rotary_interleaved"))
    if s.integer("do_rotary"):
        query, key = (_rotated(s, each, places, rotary) for each in (query, key))
    keys, values = (
        _cached(s, past, new, starts) for past, new in ((s.input(3), key), (s.input(4), value))
    )
    used = [_used(s, each) for each in (keys, values)]
    mask = _mask(s, used[0], places)
    scale, cap = s.number("scale"), s.number("softcap")
    attributes = {**({"scale": scale} if scale else {}), **({"softcap": cap} if cap else {})}
    mixed = s("Transpose", s("Attention", query, *used, mask, **attributes),
              perm=HEADS_FIRST)  # fmt: skip
    s.give(0, s("Reshape", mixed, s.constant([0, 0, -1])))
    s.give(1, keys)
    s.give(2, values)


def _heads(s: Pattern) -> list[str]:
    """Return queries, keys and values as [batch, heads, steps, length], unpacked if necessary."""
    count, shared = s.count("num_heads"), s.count("kv_num_heads")
    parts = [s.input(index) for index in range(3)]
    if not parts[1]:
        length = s.length(parts[0], 2) // (count + 2 * shared)
        sizes = s.constant([count * length, shared * length, shared * length])
        parts = s.many("Split", 3, parts[0], sizes, axis=-1)
    return [
        s("Transpose", s("Reshape", part, s.constant([0, 0, heads, -1])), perm=HEADS_FIRST)
        for part, heads in zip(parts, (count, shared, shared), strict=True)
    ]


def _rotated(s: Pattern, x: str, places: str, rotary: _Rotary) -> str:
    at, interleaved = rotary.places or places, rotary.interleaved
    return s("RotaryEmbedding", x, rotary.cosines, rotary.sines, at, interleaved=interleaved)


def _cached(s: Pattern, past: str, new: str, starts: str) -> str:
    """Return past rows with new ones inserted where the past of each row ends."""
    return s("TensorScatter", _room(s, past, new), new, starts, axis=2) if past else new


def _room(s: Pattern, past: str, new: str) -> str:
    """Return past rows extended to the total number, unless they have room for it.

    If only a run knows the total, the shape that the file declares decides. A sliding cache keeps
    its number of rows; while they are enough, no row has to leave it.
    """
    if s.integer("sliding_window_cache"):
        return past
    if s.is_known(s.input(6)):
        more = s("Sub", _total(s), s("Shape", past, start=2, end=3))
        more = s("Max", more, s.constant([0]))
        return s("Pad", past, s("Concat", s.constant([0] * 6), more, s.constant([0]), axis=0))
    present, before = s.declared_shape(1), s.shape(past)
    has_room = present is not None and len(present) == 4 and present[2] == before[2] is not None
    return past if has_room else s("Concat", past, new, axis=2)


def _total(s: Pattern) -> str:
    return s("Reshape", s("Cast", s.input(6), to=INT64), s.constant([1]))


def _used(s: Pattern, rows: str) -> str:
    """Return the rows that are filled, if their number is known before the run."""
    past, total = s.input(3), s.input(6)
    if not past or not s.is_known(total) or s.integer("sliding_window_cache"):
        return rows
    return s("Slice", rows, s.constant([0]), _total(s), s.constant([2]))


def _mask(s: Pattern, keys: str, places: str) -> str:
    """Return which keys each query sees, or the bias of its scores."""
    count = s("Squeeze", s("Shape", keys, start=2, end=3))
    index = s("Range", s.constant(0), count, s.constant(1))
    here = s("Unsqueeze", places, s.constant([1, 3]))
    seen = s("LessOrEqual", index, here)
    window = s.integer("local_window_size")
    if window >= 0:
        seen = s("And", seen, s("Greater", index, s("Sub", here, s.constant(window))))
    bias = s.input(10)
    return s("Where", seen, bias, s.constant(LOWEST, np.float32)) if bias else seen


_NORMS = "belongs to q_norm_weight and k_norm_weight"
GROUPED_ATTENTION = {
    "GroupQueryAttention": Translation(
        grouped_attention,
        "query key? value? past_key? past_value? seqlens_k total_sequence_length cos_cache? "
        "sin_cache? position_ids? attention_bias? !head_sink !k_scale !v_scale !q_norm_weight "
        "!k_norm_weight !query_seqlens",
        "output present_key? present_value? !output_qk",
        {
            "num_heads": REQUIRED, "kv_num_heads": REQUIRED, "do_rotary": 0,
            "rotary_interleaved": 0, "local_window_size": -1, "scale": 0.0, "softcap": 0.0,
            "sliding_window_cache": 0,
        },
        only={
            "causal": (1,), "smooth_softmax": (-1, 0),
            "k_quant_type": ("NONE",), "v_quant_type": ("NONE",), "kv_cache_bit_width": (0,),
            "qk_output": (0,),
        },
        idle={"qk_norm_epsilon": _NORMS, "q_norm_epsilon": _NORMS, "k_norm_epsilon": _NORMS},
    ),
}  # fmt: skip
"""Translations by operator."""
