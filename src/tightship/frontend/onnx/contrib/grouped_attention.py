"""GroupQueryAttention: several queries share a key, rows of a batch are of different lengths."""

import numpy as np

from tightship.frontend.onnx.contrib.spelling import Spelling

INT64, HEADS_FIRST = 7, [0, 2, 1, 3]
LOWEST = float(np.finfo(np.float32).min)


def grouped_attention(s: Spelling) -> None:
    """New keys are written behind each row's own past; queries see those up to their place."""
    s.refuse_inputs({11: "head_sink"})
    s.refuse_attributes({"smooth_softmax": 0, "k_quant_type": 0, "v_quant_type": 0})
    query, key, value = _heads(s)
    steps = s("Squeeze", s("Shape", query, start=2, end=3))
    lengths = s("Add", s("Cast", s.input(5), to=INT64), s.constant(1))
    starts = s("Max", s("Sub", s("Reshape", lengths, s.constant([-1])), steps), s.constant(0))
    index = s("Range", s.constant(0), steps, s.constant(1))
    places = s("Add", s("Unsqueeze", starts, s.constant([1])), index)
    if s.integer("do_rotary", 0):
        query, key = (_rotated(s, each, places) for each in (query, key))
    keys, values = (
        _cached(s, past, new, starts) for past, new in ((s.input(3), key), (s.input(4), value))
    )
    used = [_used(s, each) for each in (keys, values)]
    mask = _mask(s, used[0], places)
    scale, cap = s.number("scale", 0.0), s.number("softcap", 0.0)
    attributes = {**({"scale": scale} if scale else {}), **({"softcap": cap} if cap else {})}
    mixed = s("Transpose", s("Attention", query, *used, mask, **attributes),
              perm=HEADS_FIRST)  # fmt: skip
    s.give(0, s("Reshape", mixed, s.constant([0, 0, -1])))
    s.give(1, keys)
    s.give(2, values)


def _heads(s: Spelling) -> list[str]:
    """Queries, keys and values as [batch, heads, steps, length]; packed if there are no keys."""
    count, shared = s.integer("num_heads", 0), s.integer("kv_num_heads", 0)
    parts = [s.input(index) for index in range(3)]
    if not parts[1]:
        length = s.length(parts[0], 2) // (count + 2 * shared)
        sizes = s.constant([count * length, shared * length, shared * length])
        parts = s.many("Split", 3, parts[0], sizes, axis=-1)
    return [
        s("Transpose", s("Reshape", part, s.constant([0, 0, heads, -1])), perm=HEADS_FIRST)
        for part, heads in zip(parts, (count, shared, shared), strict=True)
    ]


def _rotated(s: Spelling, x: str, places: str) -> str:
    at = s.input(9) or places
    interleaved = s.integer("rotary_interleaved", 0)
    return s("RotaryEmbedding", x, s.input(7), s.input(8), at, interleaved=interleaved)


def _cached(s: Spelling, past: str, new: str, starts: str) -> str:
    """Past and new rows, the new ones where the past ones of each row end."""
    return s("TensorScatter", _room(s, past, new), new, starts, axis=2) if past else new


def _room(s: Spelling, past: str, new: str) -> str:
    """As many rows as there are in all, or as the past has if it has room for all.

    Where only the run knows how many there are in all, what the file declares decides.
    """
    if s.is_known(s.input(6)):
        more = s("Sub", _total(s), s("Shape", past, start=2, end=3))
        more = s("Max", more, s.constant([0]))
        return s("Pad", past, s("Concat", s.constant([0] * 6), more, s.constant([0]), axis=0))
    present, before = s.declared_shape(1), s.shape(past)
    has_room = present is not None and len(present) == 4 and present[2] == before[2] is not None
    return past if has_room else s("Concat", past, new, axis=2)


def _total(s: Spelling) -> str:
    return s("Reshape", s("Cast", s.input(6), to=INT64), s.constant([1]))


def _used(s: Spelling, rows: str) -> str:
    """The rows that hold anything, where their number is known before the run."""
    if not s.input(3) or not s.is_known(s.input(6)):
        return rows
    return s("Slice", rows, s.constant([0]), _total(s), s.constant([2]))


def _mask(s: Spelling, keys: str, places: str) -> str:
    """Which keys a query sees, or what is added to their scores."""
    count = s("Squeeze", s("Shape", keys, start=2, end=3))
    index = s("Range", s.constant(0), count, s.constant(1))
    here = s("Unsqueeze", places, s.constant([1, 3]))
    seen = s("LessOrEqual", index, here)
    window = s.integer("local_window_size", -1)
    if window >= 0:
        seen = s("And", seen, s("Greater", index, s("Sub", here, s.constant(window))))
    bias = s.input(10)
    return s("Where", seen, bias, s.constant(LOWEST, np.float32)) if bias else seen


GROUPED_ATTENTION = {"GroupQueryAttention": grouped_attention}
"""By operator."""
