"""Decoders of T5 and BART as optimum and torch.onnx write them, with made weights."""

import numpy as np
from onnx import numpy_helper

from tests.decoder_exports import causal_bias
from tests.decoders import BOOL, FLOAT, INT64, LOWEST, Size, Writer

PAST = "past_decoder_sequence_length"
TOTAL = f"{PAST} + decoder_sequence_length"
ROWS = "encoder_sequence_length"
BUCKETS, FARTHEST = 8, 20


def t5(size: Size | None = None) -> bytes:
    """T5: a bias by distance, a mask that is written over itself, caches of an encoder's rows."""
    w = Writer(size or Size(shared=4))
    ids, seen, own, fixed = _inputs(w)
    past, steps = _length(w, own[0][0], 2), _length(w, ids, 1)
    total = w("Add", past, steps)
    new, every = (
        w("Range", past, total, w.constant(1)),
        w("Range", w.constant(0), total, w.constant(1)),
    )
    mask = _mask(w, ids, (new, every), (steps, total))
    bias = w("Add", _bias_by_distance(w, new, every), mask)
    x = w("Gather", w.weight(w.size.vocabulary, w.size.width), ids)
    return _finished(w, x, (own, fixed), bias, seen)


def bart(*, flat: bool) -> bytes:
    """BART: positions from the third row of a table on, and a mask of ones that the graph makes.

    With `flat`, the mask is gathered as TorchScript does it, from texts that are joined; else as
    dynamo does, by text and column.
    """
    w = Writer(Size(shared=4))
    ids, seen, own, fixed = _inputs(w)
    past, steps = _length(w, own[0][0], 2), _length(w, ids, 1)
    total = w("Add", past, steps)
    lengths = [w("Unsqueeze", each, w.constant([0])) for each in (_length(w, ids, 0), total)]
    one = numpy_helper.from_array(np.ones(1, np.int64))
    ones = w("ConstantOfShape", w("Concat", *lengths, axis=0), value=one)
    mask = w("Cast", ones, to=BOOL)
    bias = causal_bias(w, mask, ids, own[0][0], window=0, flat=flat)
    places = w("Add", w("Range", past, total, w.constant(1)), w.constant(2))
    tables = [w.weight(rows, w.size.width) for rows in (w.size.vocabulary, w.size.positions)]
    x = w("Add", w("Gather", tables[0], ids), w("Gather", tables[1], places))
    return _finished(w, x, (own, fixed), bias, seen)


def _inputs(w: Writer) -> tuple[str, str, list[list[str]], list[list[str]]]:
    """Write the tokens, the mask of the encoder's rows, own caches and those of these rows."""
    ids = w.input("input_ids", INT64, "batch_size", "decoder_sequence_length")
    seen = w.input("encoder_attention_mask", INT64, "batch_size", ROWS)
    own, fixed = ([_caches(w, layer, side, rows) for layer in range(w.size.layers)]
                  for side, rows in (("decoder", PAST), ("encoder", ROWS)))  # fmt: skip
    return ids, seen, own, fixed


def _finished(
    w: Writer, x: str, caches: tuple[list[list[str]], list[list[str]]], bias: str, seen: str
) -> bytes:
    """Write the layers, each of which attends to its own rows and to the encoder's."""
    size, (own, fixed) = w.size, caches
    absent = w("Sub", w.number(1), w("Cast", w("Unsqueeze", seen, w.constant([1, 2])), to=FLOAT))
    for layer, (old, cross) in enumerate(zip(own, fixed, strict=True)):
        y = w.norm(x)
        query, key, value = (w.heads(w.dense(y, size.width, size.width), size.heads)
                             for _ in range(3))  # fmt: skip
        grown = [w("Concat", a, b, axis=-2) for a, b in zip(old, (key, value), strict=True)]
        for kind, each in zip(("key", "value"), grown, strict=True):
            name = w.called(f"present.{layer}.decoder.{kind}", each)
            w.output(name, FLOAT, "batch_size", size.heads, TOTAL, size.length)
        grown = [f"present.{layer}.decoder.{kind}" for kind in ("key", "value")]
        x = w("Add", x, _attended(w, query, grown, bias))
        query = w.heads(w.dense(w.norm(x), size.width, size.width), size.heads)
        x = w("Add", x, _attended(w, query, cross, w("Mul", absent, w.number(LOWEST))))
        x = w.feed_forward(x)
    w.logits(x, "batch_size")
    return w.finished()


def _caches(w: Writer, layer: int, side: str, rows: str) -> list[str]:
    return [
        w.input(f"past_key_values.{layer}.{side}.{part}", FLOAT, "batch_size", w.size.heads, rows,
                w.size.length)
        for part in ("key", "value")
    ]  # fmt: skip


def _attended(w: Writer, query: str, rows: list[str], bias: str) -> str:
    scores = w("Add", w("MatMul", query, w("Transpose", rows[0], perm=[0, 1, 3, 2])), bias)
    mixed = w.together(w("MatMul", w("Softmax", scores, axis=-1), rows[1]))
    return w.dense(mixed, w.size.width, w.size.width)


def _length(w: Writer, name: str, axis: int) -> str:
    return w("Gather", w("Shape", name), w.constant(axis))


def _bias_by_distance(w: Writer, new: str, every: str) -> str:
    """Write a bias of each head by the bucket of the distance; far ones share buckets."""
    ahead = w("Sub", w("Unsqueeze", every, w.constant([0])), w("Unsqueeze", new, w.constant([1])))
    zeros = w("Expand", w.constant([0]), w("Shape", ahead))
    distance = w("Neg", w("Min", ahead, zeros))
    exact = BUCKETS // 2
    steep = w("Log", w("Div", w("Cast", distance, to=FLOAT), w.number(exact)))
    scale = (BUCKETS - exact) / np.log(FARTHEST / exact)
    far = w("Add", w("Cast", w("Mul", steep, w.number(scale)), to=INT64), w.constant(exact))
    far = w("Min", far, w("Expand", w.constant([BUCKETS - 1]), w("Shape", far)))
    bucket = w("Where", w("Less", distance, w.constant(exact)), distance, far)
    found = w("Gather", w.weight(BUCKETS, w.size.heads), bucket)
    return w("Unsqueeze", w("Transpose", found, perm=[2, 0, 1]), w.constant([0]))


def _mask(w: Writer, ids: str, ranges: tuple[str, str], lengths: tuple[str, str]) -> str:
    """Write a causal mask, and its own elements over it: `mask[:, :, :, :total] = ...`."""
    new, every = ranges
    shape = w("Concat", *(w("Unsqueeze", each, w.constant([0])) for each in lengths), axis=0)
    later = w("Greater", every, w("Unsqueeze", new, w.constant([1])))
    zeros = w("Expand", w.number(0), shape)
    mask = w("Where", later, w.number(LOWEST), zeros)
    batch = w("Unsqueeze", _length(w, ids, 0), w.constant([0]))
    whole = w("Concat", batch, w.constant([1]), shape, axis=0)
    mask = w("Expand", w("Unsqueeze", mask, w.constant([0, 1])), whole)
    first = w.constant([0])
    ends = w("Unsqueeze", lengths[1], w.constant([0]))
    written = w("Slice", mask, first, ends, w.constant([3]), w.constant([1]))
    written = w("Where", w("Equal", written, w.number(1)), w.number(LOWEST), written)
    places = []
    for axis, column in enumerate(([-1, 1, 1, 1], [-1, 1, 1], [-1, 1], None)):
        each = w("Range", w.constant(0), _length(w, mask, axis), w.constant(1))
        if column is None:
            each = w("Slice", each, first, ends, w.constant([0]), w.constant([1]))
        places.append(each if column is None else w("Reshape", each, w.constant(column)))
    wanted = w("Shape", written)
    indices = [w("Unsqueeze", w("Expand", each, wanted), w.constant([-1])) for each in places]
    return w("ScatterND", mask, w("Concat", *indices, axis=-1), written)
