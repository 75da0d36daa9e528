"""Writes a Llama in a GGUF file as the ONNX decoder that onnxruntime-genai's builder would write.

Blocks of 32 integers (Q4_0, Q8_0) become MatMulNBits with the same integers and scales, zero point
8 or 128, accuracy level 4; scales stay float16 in the file, and a Cast converts them. Rows of
queries and keys, which llama.cpp interleaves within a head, return to halves. A head that the file
lacks reads the table of tokens. `gguf` must be installed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

Array = NDArray[Any]
BLOCK = 32
BITS = {"Q4_0": 4, "Q8_0": 8}
STANDARD = frozenset(
    {"Add", "Cast", "Gather", "Identity", "Mul", "ReduceSum", "Reshape", "Shape", "Sigmoid",
     "SimplifiedLayerNormalization", "Sub"}
)  # fmt: skip
"""Operators of ONNX's own domain, as ONNX Runtime counts them."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix of blocks: integers `[rows, blocks, bytes]`, float16 scales `[rows, blocks]`."""

    integers: Array
    scales: Array
    bits: int

    @property
    def depth(self) -> int:
        """Elements of a row."""
        return int(self.integers.shape[1]) * BLOCK

    def rows(self, order: Array) -> "Blocks":
        """Return rows in another order."""
        return Blocks(self.integers[order], self.scales[order], self.bits)

    def floats(self) -> Array:
        """Return the numbers, as float32."""
        q = self.integers
        if self.bits == 4:
            q = np.stack([q & 15, q >> 4], -1).reshape(*q.shape[:2], BLOCK)
        centred = q.astype(np.float32) - (1 << (self.bits - 1))
        floats = centred * self.scales[..., None].astype(np.float32)
        return floats.reshape(len(q), -1)


@dataclass(frozen=True, slots=True)
class Llama:
    """Sizes of a Llama, and its tensors: blocks, or float32."""

    layers: int
    heads: int
    shared: int
    length: int
    base: float
    epsilon: float
    tensors: Mapping[str, Blocks | Array]

    def blocks(self, name: str) -> Blocks:
        """Return a matrix; rows of queries and keys with the halves of a head apart."""
        found = self.tensors[f"{name}.weight"]
        assert isinstance(found, Blocks), name
        if not name.endswith((".attn_q", ".attn_k")):
            return found
        order = np.arange(len(found.scales)).reshape(-1, self.length // 2, 2)
        return found.rows(order.transpose(0, 2, 1).reshape(-1))

    def floats(self, name: str) -> Array:
        """Return a vector."""
        found = self.tensors[f"{name}.weight"]
        assert not isinstance(found, Blocks), name
        return found

    @property
    def is_tied(self) -> bool:
        """Whether the head is the table of tokens."""
        return "output.weight" not in self.tensors


def read(path: Path) -> Llama:
    """Read a Llama without biases and without scaled positions.

    Raises:
        ValueError: The file has another architecture, or a matrix of another type.
    """
    from gguf import GGUFReader  # type: ignore[import-not-found, unused-ignore]

    reader = GGUFReader(path)

    def field(name: str, other: Any = None) -> Any:
        found = reader.get_field(name)
        return other if found is None else found.contents()

    kind = field("general.architecture")
    tensors = {each.name: _tensor(each) for each in reader.tensors}
    odd = [name for name in tensors if name.endswith(".bias") or name == "rope_freqs.weight"]
    if kind != "llama" or odd or field("llama.rope.scaling.type"):
        raise ValueError(f"{path} is a {kind} with {odd or 'scaled positions'}, not a plain Llama.")
    heads = field("llama.attention.head_count")
    width = field("llama.embedding_length")
    return Llama(
        field("llama.block_count"), heads, field("llama.attention.head_count_kv", heads),
        field("llama.attention.key_length", width // heads), field("llama.rope.freq_base", 1e4),
        field("llama.attention.layer_norm_rms_epsilon"), tensors,
    )  # fmt: skip


def _tensor(tensor: Any) -> Blocks | Array:
    kind = tensor.tensor_type.name
    if kind == "F32":
        return np.array(tensor.data, np.float32)
    if kind not in BITS:
        raise ValueError(f"`{tensor.name}` is {kind}; types that are known: F32, {', '.join(BITS)}")
    raw = np.asarray(tensor.data)
    raw = raw.reshape(len(raw), -1, 2 + BLOCK * BITS[kind] // 8)
    scales, stored = np.ascontiguousarray(raw[..., :2]).view(np.float16)[..., 0], raw[..., 2:]
    if kind == "Q8_0":
        return Blocks(stored ^ np.uint8(128), scales, 8)
    low, high = stored & 15, stored >> 4  # elements 0 to 15, and 16 to 31
    every = np.concatenate([low, high], -1)
    return Blocks(every[..., ::2] | every[..., 1::2] << np.uint8(4), scales, 4)


def write(model: Llama, path: Path, *, context: int = 32768, level: int = 4) -> None:
    """Write the decoder to `path`, and its weights beside it."""
    graph = _Writer(model, level).graph(context)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    beside = path.with_suffix(".weights")
    beside.unlink(missing_ok=True)
    onnx.save(proto, path, save_as_external_data=True, location=beside.name)


class _Writer:
    """A decoder being written."""

    def __init__(self, model: Llama, level: int) -> None:
        self.model, self.level = model, level
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def node(self, operator: str, *inputs: str, outputs: Any = None, **attributes: Any) -> str:
        domain = "" if operator in STANDARD else "com.microsoft"
        name = f"{operator}_{len(self.nodes)}"
        outputs = outputs or [f"{name}.out"]
        made = helper.make_node(operator, inputs, outputs, name, domain=domain, **attributes)
        self.nodes.append(made)
        return str(outputs[0])

    def tensor(self, name: str, value: Any) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def stored(self, name: str, weights: Blocks) -> tuple[str, str]:
        """Write a matrix: integers as MatMulNBits takes them, and scales, converted to float32."""
        integers = self.tensor(f"{name}.integers", weights.integers)
        scales = self.tensor(f"{name}.scales", weights.scales)
        return integers, self.node("Cast", scales, to=TensorProto.FLOAT)

    def product(self, x: str, stored: tuple[str, str], weights: Blocks) -> str:
        return self.node(
            "MatMulNBits", x, *stored, K=weights.depth, N=len(weights.scales), bits=weights.bits,
            block_size=BLOCK, accuracy_level=self.level,
        )  # fmt: skip

    def matrix(self, x: str, *names: str) -> str:
        """Multiply by matrices whose rows follow one another."""
        found = [self.model.blocks(name) for name in names]
        whole = Blocks(
            np.concatenate([each.integers for each in found]),
            np.concatenate([each.scales for each in found]), found[0].bits,
        )  # fmt: skip
        return self.product(x, self.stored("+".join(names), whole), whole)

    def graph(self, context: int) -> onnx.GraphProto:
        model = self.model
        table = model.blocks("token_embd")
        width, vocabulary = table.depth, len(table.scales)
        head = table if model.is_tied else model.blocks("output")
        lengths, tables = self.lengths(), self.tables(context)
        stored = self.stored("token_embd", table)
        flat = self.node("Reshape", stored[0], self.tensor("flat", np.array([vocabulary, -1])))
        x = self.node("GatherBlockQuantized", flat, "input_ids", stored[1], bits=table.bits,
                      block_size=BLOCK, gather_axis=0, quantize_axis=1)  # fmt: skip
        for layer in range(model.layers):
            x = self.layer(f"blk.{layer}", layer, x, (lengths, tables))
        x = self.normalized("output_norm", x)
        final = stored if model.is_tied else self.stored("output", head)
        self.node("Identity", self.product(x, final, head), outputs=["logits"])
        past: list[int | str] = ["batch_size", model.shared, "past_sequence_length", model.length]
        total: list[int | str] = [*past[:2], "total_sequence_length", model.length]
        caches = [f"{layer}.{kind}" for layer in range(model.layers) for kind in ("key", "value")]
        ids: list[int | str] = ["batch_size", "sequence_length"]
        mask: list[int | str] = ["batch_size", "total_sequence_length"]
        return helper.make_graph(
            self.nodes, "llama",
            [_info("input_ids", TensorProto.INT64, ids),
             _info("attention_mask", TensorProto.INT64, mask),
             *(_info(f"past_key_values.{name}", TensorProto.FLOAT, past) for name in caches)],
            [_info("logits", TensorProto.FLOAT, [*ids, vocabulary]),
             *(_info(f"present.{name}", TensorProto.FLOAT, total) for name in caches)],
            self.tensors, doc_string=f"width {width}",
        )  # fmt: skip

    def lengths(self) -> tuple[str, str]:
        """Return each row's number of tokens without the last one, and the length of the mask."""
        seen = self.node("ReduceSum", "attention_mask", self.tensor("last", np.array([1])),
                         keepdims=0)  # fmt: skip
        seen = self.node("Sub", seen, self.tensor("one", np.array(1)))
        total = self.node("Shape", "attention_mask", start=1, end=2)
        total = self.node("Reshape", total, self.tensor("scalar", np.zeros(0, np.int64)))
        return (self.node("Cast", seen, to=TensorProto.INT32),
                self.node("Cast", total, to=TensorProto.INT32))  # fmt: skip

    def tables(self, context: int) -> tuple[str, str]:
        half = self.model.length // 2
        angles = np.arange(context)[:, None] / self.model.base ** (np.arange(half) / half)
        return (self.tensor("cos", np.cos(angles).astype(np.float32)),
                self.tensor("sin", np.sin(angles).astype(np.float32)))  # fmt: skip

    def layer(self, name: str, layer: int, x: str, given: Any) -> str:
        lengths, tables = given
        model = self.model
        normal = self.normalized(f"{name}.attn_norm", x)
        packed = self.matrix(normal, *(f"{name}.attn_{each}" for each in "qkv"))
        mixed = self.node(
            "GroupQueryAttention", packed, "", "", f"past_key_values.{layer}.key",
            f"past_key_values.{layer}.value", *lengths, *tables,
            outputs=[f"{name}.mixed", f"present.{layer}.key", f"present.{layer}.value"],
            num_heads=model.heads, kv_num_heads=model.shared, do_rotary=1,
        )  # fmt: skip
        x = self.node("Add", x, self.matrix(mixed, f"{name}.attn_output"))
        normal = self.normalized(f"{name}.ffn_norm", x)
        gate, up = (self.matrix(normal, f"{name}.ffn_{each}") for each in ("gate", "up"))
        inside = self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), up)
        return self.node("Add", x, self.matrix(inside, f"{name}.ffn_down"))

    def normalized(self, name: str, x: str) -> str:
        scale = self.tensor(f"{name}.weight", self.model.floats(name))
        return self.node("SimplifiedLayerNormalization", x, scale, epsilon=self.model.epsilon,
                         axis=-1)  # fmt: skip


def logits(model: Llama, ids: list[int]) -> Array:
    """Compute the logits `[tokens, vocabulary]` in float32, by the equations of a Llama."""

    def normalized(x: Array, name: str) -> Array:
        mean = np.mean(x * x, -1, keepdims=True)
        return x / np.sqrt(mean + np.float32(model.epsilon)) * model.floats(name)

    def heads(x: Array, name: str, count: int) -> Array:
        return (x @ model.blocks(name).floats().T).reshape(len(ids), count, -1).swapaxes(0, 1)

    half = model.length // 2
    angles = np.arange(len(ids))[:, None] / model.base ** (np.arange(half) / half)
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def rotated(x: Array) -> Array:
        left, right = x[..., :half], x[..., half:]
        return np.concatenate([left * cos - right * sin, right * cos + left * sin], -1)

    table = model.blocks("token_embd").floats()
    x = table[ids]
    hidden = np.triu(np.full((len(ids), len(ids)), -np.inf, np.float32), 1)
    for layer in range(model.layers):
        name = f"blk.{layer}"
        normal = normalized(x, f"{name}.attn_norm")
        q = rotated(heads(normal, f"{name}.attn_q", model.heads))
        k = rotated(heads(normal, f"{name}.attn_k", model.shared))
        v = heads(normal, f"{name}.attn_v", model.shared)
        k, v = (np.repeat(each, model.heads // model.shared, 0) for each in (k, v))
        scores = q @ k.swapaxes(1, 2) / np.float32(model.length**0.5) + hidden
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ v
        mixed = mixed.swapaxes(0, 1).reshape(len(ids), -1)
        x = x + mixed @ model.blocks(f"{name}.attn_output").floats().T
        normal = normalized(x, f"{name}.ffn_norm")
        gate, up = (normal @ model.blocks(f"{name}.ffn_{e}").floats().T for e in ("gate", "up"))
        inside = gate / (1 + np.exp(-gate)) * up
        x = x + inside @ model.blocks(f"{name}.ffn_down").floats().T
    x = normalized(x, "output_norm")
    return x @ (table if model.is_tied else model.blocks("output").floats()).T


def _info(name: str, element: int, dims: list[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, dims)
