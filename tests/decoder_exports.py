"""Decoders as transformers 5 and torch.onnx write them, with made weights."""

import numpy as np
import onnx
from onnx import helper

from tests.decoders import BOOL, FLOAT, INT64, PAST, TOTAL, Size, Writer, repeated, rotated


def transformers5(
    size: Size | None = None, batch: str | int = "batch_size", *, cap: float = 0.0,
    window: int = 0, flat: bool = False,
) -> bytes:  # fmt: skip
    """Llama, or Gemma 2's attention if scores have a cap, or Mistral's with a window.

    The past is appended to an empty cache, the mask is gathered by batch and column (with `flat`
    by one number, from a mask whose texts are joined, as TorchScript does), and weights that are
    not numbers become zero.
    """
    size = size or Size()
    w = Writer(size)
    ids = w.input("input_ids", INT64, batch, "sequence_length")
    mask = w.input("attention_mask", INT64, batch, TOTAL)
    places = w.input("position_ids", INT64, batch, "sequence_length")
    caches = [w.cache(layer, size.shared, batch) for layer in range(size.layers)]
    x = w("Gather", w.weight(size.vocabulary, size.width), ids)
    angles = w.constant(1 / 10.0 ** np.arange(size.length // 2), np.float32)
    turned = w("Mul", w("Cast", w("Unsqueeze", places, w.constant([2])), to=FLOAT), angles)
    both = w("Unsqueeze", w("Concat", turned, turned, axis=-1), w.constant([1]))
    cosines, sines = w("Cos", both), w("Sin", both)
    bias = causal_bias(w, mask, ids, w("Concat", caches[0][0], axis=2), window=window, flat=flat)
    scale = w.number(size.length**-0.25)
    for layer, caches_before in enumerate(caches):
        y = w.norm(x)
        query = w.heads(w.dense(y, size.width, size.width), size.heads)
        key, value = (w.heads(w.dense(y, size.width, size.kv_width), size.shared)
                      for _ in range(2))  # fmt: skip
        query, key = (rotated(w, each, cosines, sines) for each in (query, key))
        before = [w("Concat", each, axis=2) for each in caches_before]
        grown = [w("Concat", old, new, axis=2)
                 for old, new in zip(before, (key, value), strict=True)]  # fmt: skip
        key, value = (repeated(w, each) for each in w.present(layer, grown, batch))
        turned = w("Mul", w("Transpose", key, perm=[0, 1, 3, 2]), scale)
        scores = w("MatMul", w("Mul", query, scale), turned)
        if cap:
            scores = w("Mul", w("Tanh", w("Div", scores, w.number(cap))), w.number(cap))
        weights = w("Softmax", w("Add", scores, bias), axis=-1)
        weights = w("Where", w("IsNaN", weights), w.number(0), weights)
        mixed = w.together(w("MatMul", weights, value))
        x = w.feed_forward(w("Add", x, w.dense(mixed, size.width, size.width)))
    w.logits(x, batch)
    return w.finished()


def causal_bias(w: Writer, mask: str, ids: str, past: str, *, window: int, flat: bool) -> str:
    """Write 0 where a query sees a key, and the lowest number elsewhere."""
    zero, one = w.constant(0), w.constant(1)
    rows, steps, batch = (
        w("Gather", w("Shape", name), w.constant(axis))
        for name, axis in ((past, 2), (ids, 1), (ids, 0))
    )
    total = w("Add", rows, steps)
    texts = w("Unsqueeze", w("Range", zero, batch, one), w.constant([1, 2, 3]))
    columns = w("Unsqueeze", w("Range", zero, total, one), w.constant([0, 1, 2]))
    queries = w("Add", w("Range", zero, steps, one), rows)
    causal = w("LessOrEqual", columns, w("Unsqueeze", queries, w.constant([0, 1, 3])))
    if window:
        first = w("Sub", w("Unsqueeze", queries, w.constant([0, 1, 3])), w.constant(window))
        causal = w("And", causal, w("Greater", columns, first))
    kept = (_gathered_flat if flat else _gathered)(w, w("Cast", mask, to=BOOL), texts, columns)
    lowest = w.number(float(np.finfo(np.float32).min))
    return w("Where", w("And", causal, kept), w.number(0), lowest)


def _gathered(w: Writer, mask: str, texts: str, columns: str) -> str:
    """Gather a mask by text and column."""
    shape = w("Shape", w("Max", texts, columns))
    places = [w("Unsqueeze", w("Expand", each, shape), w.constant([-1]))
              for each in (texts, columns)]  # fmt: skip
    return w("GatherND", mask, w("Concat", *places, axis=-1))


def _gathered_flat(w: Writer, mask: str, texts: str, columns: str) -> str:
    """Gather a mask by one number, and reshape what was gathered twice."""
    rows = w("Gather", w("Shape", mask), w.constant(1))
    places = w("Add", w("Mul", texts, rows), columns)
    found = w("Gather", w("Flatten", mask, axis=2), places)
    return w("Reshape", w("Reshape", found, w.constant([-1])), w("Shape", places))


def crossed(rows: int | str = "encoder_sequence_length") -> bytes:
    """Whisper's decoder with past: caches of its tokens, and of the encoder's rows."""
    size = Size(shared=4)
    w = Writer(size)
    ids = w.input("input_ids", INT64, "batch_size", "decoder_sequence_length")
    own = [w.cache(layer, size.heads, "batch_size", PAST) for layer in range(size.layers)]
    fixed = [
        [w.input(f"past_key_values.{layer}.encoder.{part}", FLOAT, "batch_size", size.heads, rows,
                 size.length) for part in ("key", "value")]
        for layer in range(size.layers)
    ]  # fmt: skip
    at = [w("Gather", w("Shape", n), w.constant(axis)) for n, axis in ((own[0][0], 2), (ids, 1))]
    total = w("Add", *at)
    places = w("Range", at[0], total, w.constant(1))
    x = w("Gather", w.weight(size.vocabulary, size.width), ids)
    x = w("Add", x, w("Gather", w.weight(size.positions, size.width), places))
    columns = w("Range", w.constant(0), total, w.constant(1))
    later = w("Greater", columns, w("Unsqueeze", places, w.constant([1])))
    scale = w.number(size.length**-0.5)
    for layer, (old, cross) in enumerate(zip(own, fixed, strict=True)):
        y = w.norm(x)
        query, key, value = (w.heads(w.dense(y, size.width, size.width), size.heads)
                             for _ in range(3))  # fmt: skip
        grown = [w("Concat", a, b, axis=2) for a, b in zip(old, (key, value), strict=True)]
        grown = w.present(layer, grown, "batch_size")
        scores = w("Mul", w("MatMul", query, w("Transpose", grown[0], perm=[0, 1, 3, 2])), scale)
        scores = w("Where", later, w.number(-1e9), scores)
        mixed = w("MatMul", w("Softmax", scores, axis=-1), grown[1])
        x = w("Add", x, w.dense(w.together(mixed), size.width, size.width))
        query = w.heads(w.dense(w.norm(x), size.width, size.width), size.heads)
        scores = w("Mul", w("MatMul", query, w("Transpose", cross[0], perm=[0, 1, 3, 2])), scale)
        mixed = w("MatMul", w("Softmax", scores, axis=-1), cross[1])
        x = w.feed_forward(w("Add", x, w.dense(w.together(mixed), size.width, size.width)))
    w.logits(x, "batch_size")
    return w.finished()


def merged(data: bytes) -> bytes:
    """Both branches of a decoder in one file, as optimum merges them, here with equal nodes."""
    model = onnx.load_from_string(data)
    graph = model.graph
    branches = {
        name: helper.make_graph(graph.node, name, [], graph.output)
        for name in ("then_branch", "else_branch")
    }
    node = helper.make_node("If", ["use_cache_branch"], [o.name for o in graph.output], **branches)
    flag = helper.make_tensor_value_info("use_cache_branch", BOOL, [1])
    whole = helper.make_graph(
        [node], "merged", [*graph.input, flag], graph.output, graph.initializer
    )
    return helper.make_model(
        whole, opset_imports=model.opset_import, ir_version=10
    ).SerializeToString()
