"""Small decoders with caches, written as the usual exporters write them, with made weights."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
FLOAT, INT64, INT32, BOOL = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL,
)  # fmt: skip
PAST, TOTAL = "past_sequence_length", "past_sequence_length + sequence_length"
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class Size:
    """Lengths of a decoder."""

    layers: int = 2
    heads: int = 4
    shared: int = 2
    length: int = 8
    vocabulary: int = 50
    positions: int = 128

    @property
    def width(self) -> int:
        return self.heads * self.length

    @property
    def kv_width(self) -> int:
        return self.shared * self.length


@dataclass
class Writer:
    """A decoder being written: nodes, inputs and outputs, weights from a seed."""

    size: Size
    opset: int = 17
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)
    described: list[Any] = field(default_factory=list)
    random: Any = field(default_factory=lambda: np.random.default_rng(7))

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.many(operator, 1, *inputs, **attributes)[0]

    def many(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}.{i}" for i in range(count)]
        domain = attributes.pop("domain", "")
        self.nodes.append(
            helper.make_node(
                operator, list(inputs), names, f"n{len(self.nodes)}", domain=domain, **attributes
            )
        )
        return names

    def called(self, name: str, value: str) -> str:
        """Give a value another name, as an output has."""
        for node in self.nodes:
            node.input[:] = [name if each == value else each for each in node.input]
            node.output[:] = [name if each == value else each for each in node.output]
        return name

    def input(self, name: str, kind: int, *shape: int | str) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def output(self, name: str, kind: int, *shape: int | str) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def describe(self, name: str, *shape: int | str) -> None:
        """Declare the shape of a value between nodes."""
        self.described.append(helper.make_tensor_value_info(name, FLOAT, list(shape)))

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        numbers = self.random.standard_normal(shape) / np.sqrt(shape[0])
        return self.constant(numbers, np.float32)

    def number(self, value: float) -> str:
        return self.constant(value, np.float32)

    def finished(self) -> bytes:
        graph = helper.make_graph(
            self.nodes, "decoder", self.inputs, self.outputs, self.weights,
            value_info=self.described,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    # parts of layers

    def norm(self, x: str) -> str:
        square = self("ReduceMean", self("Mul", x, x), axes=[-1], keepdims=1) if (
            self.opset < 18
        ) else self("ReduceMean", self("Mul", x, x), self.constant([-1]), keepdims=1)  # fmt: skip
        root = self("Sqrt", self("Add", square, self.number(1e-5)))
        return self("Mul", self("Div", x, root), self.weight_like(1.0))

    def weight_like(self, mean: float) -> str:
        numbers = mean + 0.1 * self.random.standard_normal(self.size.width)
        return self.constant(numbers, np.float32)

    def dense(self, x: str, wide: int, out: int, *, bias: bool = False) -> str:
        y = self("MatMul", x, self.weight(wide, out))
        return self("Add", y, self.weight(1, out)) if bias else y

    def heads(self, x: str, count: int) -> str:
        shape = self.constant([0, 0, count, self.size.length])
        return self("Transpose", self("Reshape", x, shape), perm=[0, 2, 1, 3])

    def together(self, x: str) -> str:
        flat = self.constant([0, 0, self.size.width])
        return self("Reshape", self("Transpose", x, perm=[0, 2, 1, 3]), flat)

    def feed_forward(self, x: str) -> str:
        wide = self.size.width
        y = self.norm(x)
        gate = self.dense(y, wide, 2 * wide)
        mixed = self("Mul", self("Mul", gate, self("Sigmoid", gate)), self.dense(y, wide, 2 * wide))
        return self("Add", x, self.dense(mixed, 2 * wide, wide))

    def cache(self, layer: int, heads: int, batch: str | int, rows: str | int = PAST) -> list[str]:
        return [
            self.input(f"past_key_values.{layer}.{part}", FLOAT, batch, heads, rows,
                       self.size.length)
            for part in ("key", "value")
        ]  # fmt: skip

    def present(
        self, layer: int, values: list[str], batch: str | int, rows: str | int = TOTAL
    ) -> list[str]:
        heads = self.size.shared
        named = []
        for part, value in zip(("key", "value"), values, strict=True):
            name = self.called(f"present.{layer}.{part}", value)
            self.output(name, FLOAT, batch, heads, rows, self.size.length)
            named.append(name)
        return named

    def logits(self, x: str, batch: str | int) -> None:
        self.called("logits", self.dense(self.norm(x), self.size.width, self.size.vocabulary))
        self.output("logits", FLOAT, batch, "sequence_length", self.size.vocabulary)


def gpt2(size: Size | None = None, batch: str | int = "batch_size") -> bytes:
    """GPT-2 as TorchScript exports it: a causal table, learned positions, shape arithmetic."""
    size = size or Size(shared=4)
    w = Writer(size, 13)
    ids = w.input("input_ids", INT64, batch, "sequence_length")
    caches = [w.cache(layer, size.heads, batch) for layer in range(size.layers)]
    zero, one = w.constant([0]), w.constant([1])

    def at(value: str, axis: int) -> str:
        return w("Gather", w("Shape", value), w.constant(axis))

    past, steps = at(caches[0][0], 2), at(ids, 1)
    total = w("Add", past, steps)
    places = w("Unsqueeze", w("Range", past, total, w.constant(1)), zero)
    words = w("Gather", w.weight(size.vocabulary, size.width), ids)
    x = w("Add", words, w("Gather", w.weight(size.positions, size.width), places))
    table = np.tril(np.ones((1, 1, size.positions, size.positions), bool))
    for layer, (old_key, old_value) in enumerate(caches):
        joined = w.dense(w.norm(x), size.width, 3 * size.width, bias=True)
        parts = w.many("Split", 3, joined, w.constant([size.width] * 3), axis=2)
        query, key, value = (w.heads(part, size.heads) for part in parts)
        key = w("Concat", old_key, key, axis=-2)
        value = w("Concat", old_value, value, axis=-2)
        key, value = w.present(layer, [key, value], batch)
        scores = w("MatMul", query, w("Transpose", key, perm=[0, 1, 3, 2]))
        scores = w("Div", scores, w.number(np.sqrt(size.length)))
        count = w("Unsqueeze", at(key, -2), zero)
        first = w("Sub", count, w("Unsqueeze", at(query, -2), zero))
        seen = w("Slice", w.constant(table, bool), first, count, w.constant([2]), one)
        seen = w("Slice", seen, zero, count, w.constant([3]), one)
        scores = w("Where", seen, scores, w.number(LOWEST))
        mixed = w("MatMul", w("Softmax", scores, axis=-1), value)
        x = w("Add", x, w.dense(w.together(mixed), size.width, size.width, bias=True))
        x = w.feed_forward(x)
    w.logits(x, batch)
    return w.finished()


def llama(
    size: Size | None = None, batch: str | int = "batch_size", *, biases: bool = False
) -> bytes:
    """Llama (Qwen2 with `biases`) as optimum exports it: rotary, heads repeated by Expand."""
    size = size or Size()
    w = Writer(size, 17)
    ids = w.input("input_ids", INT64, batch, "sequence_length")
    mask = w.input("attention_mask", INT64, batch, TOTAL)
    places = w.input("position_ids", INT64, batch, "sequence_length")
    caches = [w.cache(layer, size.shared, batch) for layer in range(size.layers)]
    zero, steps = w.constant([0]), w("Shape", ids, start=1, end=2)
    total = w("Add", w("Shape", caches[0][0], start=2, end=3), steps)
    x = w("Gather", w.weight(size.vocabulary, size.width), ids)
    angles = w.constant(1 / 10.0 ** np.arange(size.length // 2)[None, :, None], np.float32)
    turned = w("MatMul", angles, w("Cast", w("Unsqueeze", places, w.constant([1])), to=FLOAT))
    turned = w("Transpose", turned, perm=[0, 2, 1])
    both = w("Unsqueeze", w("Concat", turned, turned, axis=-1), w.constant([1]))
    cosines, sines = w("Cos", both), w("Sin", both)
    bias = _bias(w, mask, total, steps)
    for layer, (old_key, old_value) in enumerate(caches):
        y = w.norm(x)
        query = w.heads(w.dense(y, size.width, size.width, bias=biases), size.heads)
        key = w.heads(w.dense(y, size.width, size.kv_width, bias=biases), size.shared)
        value = w.heads(w.dense(y, size.width, size.kv_width, bias=biases), size.shared)
        query, key = (rotated(w, each, cosines, sines) for each in (query, key))
        key = w("Concat", old_key, key, axis=2)
        value = w("Concat", old_value, value, axis=2)
        key, value = w.present(layer, [key, value], batch)
        key, value = (repeated(w, each) for each in (key, value))
        scores = w("MatMul", query, w("Transpose", key, perm=[0, 1, 3, 2]))
        scores = w("Mul", scores, w.number(1 / np.sqrt(size.length)))
        first = w("Slice", bias, zero, total, w.constant([3]))
        mixed = w("MatMul", w("Softmax", w("Add", scores, first), axis=-1), value)
        x = w("Add", x, w.dense(w.together(mixed), size.width, size.width))
        x = w.feed_forward(x)
    w.logits(x, batch)
    return w.finished()


def rotated(w: Writer, x: str, cosines: str, sines: str) -> str:
    half = w.size.length // 2
    first = w("Slice", x, w.constant([0]), w.constant([half]), w.constant([3]))
    second = w("Slice", x, w.constant([half]), w.constant([2**62]), w.constant([3]))
    turned = w("Concat", w("Neg", second), first, axis=-1)
    return w("Add", w("Mul", x, cosines), w("Mul", turned, sines))


def repeated(w: Writer, x: str) -> str:
    """Repeat heads as transformers does: Unsqueeze, Expand, Reshape, by shape arithmetic."""
    size, shape = w.size, w("Shape", x)
    batch, rows = (w("Gather", shape, w.constant([axis])) for axis in (0, 2))
    wide = w("Concat", batch, w.constant([size.shared, size.heads // size.shared]), rows,
             w.constant([size.length]), axis=0)  # fmt: skip
    ones = w("Equal", wide, w.constant([-1] * 5))
    wide = w("Where", ones, w.constant([1] * 5), wide)
    x = w("Expand", w("Unsqueeze", x, w.constant([2])), wide)
    flat = w("Concat", batch, w.constant([size.heads]), rows, w.constant([size.length]), axis=0)
    return w("Reshape", x, flat)


def _bias(w: Writer, mask: str, total: str, steps: str) -> str:
    """Write the causal mask with the padding mask, as transformers adds it to scores."""
    zero = w.constant([0])
    scalar_total = w("Squeeze", total, zero)
    scalar_past = w("Squeeze", w("Sub", total, steps), zero)
    shape = w("Concat", steps, total, axis=0)
    filled = w("ConstantOfShape", shape,
               value=numpy_helper.from_array(np.array([LOWEST], np.float32)))  # fmt: skip
    columns = w("Range", w.constant(0), scalar_total, w.constant(1))
    rows = w("Range", scalar_past, scalar_total, w.constant(1))
    later = w("Greater", columns, w("Unsqueeze", rows, w.constant([1])))
    causal = w("Mul", filled, w("Cast", later, to=FLOAT))
    causal = w("Unsqueeze", causal, w.constant([0, 1]))
    kept = w("Cast", w("Unsqueeze", mask, w.constant([1, 2])), to=FLOAT)
    padding = w("Mul", w("Sub", w.number(1), kept), w.number(LOWEST))
    return w("Where", w("Less", padding, w.number(0)), padding, causal)


def qwen2(size: Size | None = None, batch: str | int = "batch_size") -> bytes:
    """Qwen2: Llama with biases of queries, keys and values."""
    return llama(size, batch, biases=True)


def genai(
    size: Size | None = None, batch: str | int = "batch_size", *, packed: bool = True,
    window: int = -1, rows: str | None = None, sliding: bool = False, softcap: float = 0.0,
) -> bytes:  # fmt: skip
    """Llama as onnxruntime-genai builds it: GroupQueryAttention, packed, with a window.

    With `sliding`, as its version 0.18 does: the length of a head has a name, and the first cache
    keeps its number of rows.
    """
    size = size or Size(length=16)
    w = Writer(size, 17)
    ids = w.input("input_ids", INT64, batch, "sequence_length")
    mask = w.input("attention_mask", INT64, batch, "total_sequence_length")
    names = ["past_sliding_length" if sliding and not layer else rows or PAST
             for layer in range(size.layers)]  # fmt: skip
    caches = [w.cache(layer, size.shared, batch, names[layer]) for layer in range(size.layers)]
    lengths = w("Sub", w("ReduceSum", mask, w.constant([1]), keepdims=0), w.constant([1]))
    lengths = w("Cast", lengths, to=INT32)
    total = w("Cast", w("Gather", w("Shape", mask), w.constant(1)), to=INT32)
    angles = np.outer(np.arange(size.positions), 1 / 10.0 ** np.arange(size.length // 2))
    cosines = w.constant(np.cos(angles), np.float32)
    sines = w.constant(np.sin(angles), np.float32)
    x = w("Gather", w.weight(size.vocabulary, size.width), ids)
    for layer, cache in enumerate(caches):
        y = w.norm(x)
        if packed:
            operands = [w.dense(y, size.width, size.width + 2 * size.kv_width), "", ""]
        else:
            wide = (size.width, size.kv_width, size.kv_width)
            operands = [w.dense(y, size.width, each) for each in wide]
        mixed, key, value = w.many(
            "GroupQueryAttention", 3, *operands, *cache, lengths, total, cosines, sines,
            domain="com.microsoft", num_heads=size.heads, kv_num_heads=size.shared, do_rotary=1,
            local_window_size=-1 if sliding and layer else window, softcap=softcap,
            **({"sliding_window_cache": 1} if sliding and not layer else {}),
        )  # fmt: skip
        if sliding:
            w.describe(operands[0], batch, "sequence_length", size.width + 2 * size.kv_width)
        after = "total_sliding_length" if sliding and not layer else "total_sequence_length"
        w.present(layer, [key, value], batch, rows or after)
        x = w("Add", x, w.dense(mixed, size.width, size.width))
        x = w.feed_forward(x)
    w.logits(x, batch)
    for value in (*w.inputs, *w.outputs) if sliding else ():
        if value.name.startswith(("past", "present")):
            value.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    return w.finished()


def attention23(
    size: Size | None = None, batch: str | int = "batch_size", *, flat: bool = True
) -> bytes:
    """Llama with ONNX's own Attention and RotaryEmbedding of opset 23, past and present."""
    size = size or Size()
    w = Writer(size, 23)
    ids = w.input("input_ids", INT64, batch, "sequence_length")
    places = w.input("position_ids", INT64, batch, "sequence_length")
    caches = [w.cache(layer, size.shared, batch) for layer in range(size.layers)]
    angles = np.outer(np.arange(size.positions), 1 / 10.0 ** np.arange(size.length // 2))
    cosines = w.constant(np.cos(angles), np.float32)
    sines = w.constant(np.sin(angles), np.float32)
    x = w("Gather", w.weight(size.vocabulary, size.width), ids)
    for layer, cache in enumerate(caches):
        y, heads = w.norm(x), (size.heads, size.shared)
        parts = [w.dense(y, size.width, each * size.length) for each in heads]
        value = w.dense(y, size.width, size.kv_width)
        if not flat:
            parts = [w.heads(each, n) for each, n in zip(parts, heads, strict=True)]
            value = w.heads(value, size.shared)
        counts = [{"num_heads": n} if flat else {} for n in heads]
        query, key = (
            w("RotaryEmbedding", each, cosines, sines, places, **given)
            for each, given in zip(parts, counts, strict=True)
        )
        given = {"q_num_heads": size.heads, "kv_num_heads": size.shared} if flat else {}
        mixed, key, value = w.many(
            "Attention", 3, query, key, value, "", *cache, is_causal=1, **given
        )
        w.present(layer, [key, value], batch)
        mixed = mixed if flat else w.together(mixed)
        x = w("Add", x, w.dense(mixed, size.width, size.width))
        x = w.feed_forward(x)
    w.logits(x, batch)
    return w.finished()


def scattered24(size: Size | None = None, rows: int | str = 64) -> bytes:
    """Decoder of opset 24 with caches of fixed rows: TensorScatter, and lengths as inputs."""
    size = size or Size()
    w = Writer(size, 24)
    ids = w.input("input_ids", INT64, 1, "sequence_length")
    starts = w.input("write_indices", INT64, 1)
    counts = w.input("nonpad_kv_seqlen", INT64, 1)
    caches = [w.cache(layer, size.shared, 1, rows) for layer in range(size.layers)]
    x = w("Gather", w.weight(size.vocabulary, size.width), ids)
    for layer, cache in enumerate(caches):
        y = w.norm(x)
        query = w.heads(w.dense(y, size.width, size.width), size.heads)
        parts = [w.heads(w.dense(y, size.width, size.kv_width), size.shared) for _ in range(2)]
        whole = [
            w("TensorScatter", old, new, starts, axis=2)
            for old, new in zip(cache, parts, strict=True)
        ]
        whole = w.present(layer, whole, 1, rows)
        mixed = w("Attention", query, *whole, "", "", "", counts, is_causal=1)
        x = w("Add", x, w.dense(w.together(mixed), size.width, size.width))
        x = w.feed_forward(x)
    w.logits(x, 1)
    return w.finished()
