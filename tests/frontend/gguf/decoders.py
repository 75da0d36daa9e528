"""Small decoders in GGUF of each architecture, and their equations in NumPy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.frontend.gguf.written import FORMS, Tensor, random_blocks, written

Array = NDArray[Any]
WIDTH, INNER, VOCABULARY, LAYERS, HEADS, SHARED, LENGTH = 64, 96, 70, 1, 4, 2, 16
IDS = [5, 3, 57, 28, 2, 46, 49, 31, 4]


@dataclass
class Model:
    """A decoder: its metadata without the prefix, and its tensors."""

    kind: str
    fields: dict[str, Any]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def written(self, more: Mapping[str, Any] | None = None, **options: Any) -> bytes:
        """Return the bytes of its file, with `more` keys that have no prefix."""
        named = {f"{self.kind}.{key}": each for key, each in self.fields.items()}
        fields = {"general.architecture": self.kind, **named, **(more or {})}
        return written(fields, self.tensors, **options)

    def floats(self, name: str) -> Array:
        """Return a tensor's numbers, as the `gguf` package has them."""
        tensor = self.tensors[name]
        kind = gguf.GGMLQuantizationType[tensor.type]
        raw = np.frombuffer(tensor.raw, np.uint8).reshape(*tensor.shape[:-1], -1)
        found: Array = gguf.quants.dequantize(raw, kind)
        return found.astype(np.float32).reshape(tensor.shape)


def decoder(
    kind: str = "llama", type_: str = "F32", *, is_tied: bool = True, layers: int = LAYERS,
    width: int = WIDTH, **fields: Any,
) -> Model:  # fmt: skip
    """Return a small decoder with random weights."""
    known = {
        "block_count": layers, "embedding_length": width, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": SHARED,
        "attention.key_length": LENGTH, "attention.layer_norm_rms_epsilon": 1e-5,
        "context_length": 64, **fields,
    }  # fmt: skip
    model = Model(kind, known)
    serial = 0

    def matrix(name: str, rows: int, depth: int) -> None:
        nonlocal serial
        serial += 1
        fits = type_ not in FORMS or depth % FORMS[type_][0] == 0
        kind = type_ if fits else "Q8_0"  # files mix types for this reason
        model.tensors[f"{name}.weight"] = random_blocks(kind, rows, depth, serial)

    def vector(name: str, length: int, around: float = 1.0) -> None:
        random = np.random.default_rng(len(model.tensors))
        model.tensors[name] = Tensor.floats(around + 0.3 * random.standard_normal(length))

    matrix("token_embd", VOCABULARY, width)
    vector("output_norm.weight", width)
    if not is_tied:
        matrix("output", VOCABULARY, width)
    inner = known["feed_forward_length"]
    for layer in range(layers):
        _layer(f"blk.{layer}", kind, (width, inner), matrix, vector)
    return model


def _layer(name: str, kind: str, sizes: tuple[int, int], matrix: Any, vector: Any) -> None:
    width, inner = sizes
    counts = {"q": HEADS, "k": SHARED, "v": SHARED}
    norms = ["attn_norm", "ffn_norm"]
    norms += ["post_attention_norm", "post_ffw_norm"] if kind == "gemma3" else []
    for norm in norms:
        vector(f"{name}.{norm}.weight", width)
    if kind == "phi3":
        matrix(f"{name}.attn_qkv", (HEADS + 2 * SHARED) * LENGTH, width)
        matrix(f"{name}.ffn_up", 2 * inner, width)
    else:
        for part, count in counts.items():
            matrix(f"{name}.attn_{part}", count * LENGTH, width)
            if kind == "qwen2":
                vector(f"{name}.attn_{part}.bias", count * LENGTH, 0.0)
            if kind in ("qwen3", "gemma3") and part != "v":
                vector(f"{name}.attn_{part}_norm.weight", LENGTH)
        matrix(f"{name}.ffn_gate", inner, width)
        matrix(f"{name}.ffn_up", inner, width)
    matrix(f"{name}.attn_output", width, HEADS * LENGTH)
    matrix(f"{name}.ffn_down", width, inner)


def logits(model: Model, ids: Sequence[int] = IDS) -> Array:
    """Compute the logits `[tokens, vocabulary]` in float32, by the equations."""
    table = model.floats("token_embd.weight")
    head = model.floats("output.weight") if "output.weight" in model.tensors else table
    is_gemma = model.kind == "gemma3"
    x = table[list(ids)] * np.float32(table.shape[1] ** 0.5 if is_gemma else 1)
    for layer in range(model.fields["block_count"]):
        name = f"blk.{layer}"
        mixed = _attention(model, name, x, layer)
        x = x + (_normalized(model, mixed, f"{name}.post_attention_norm.weight") if is_gemma
                 else mixed)  # fmt: skip
        inner = _feed_forward(model, name, x)
        x = x + (_normalized(model, inner, f"{name}.post_ffw_norm.weight") if is_gemma else inner)
    found = _normalized(model, x, "output_norm.weight") @ head.T
    cap = model.fields.get("final_logit_softcapping")
    return np.tanh(found / cap) * np.float32(cap) if cap else found


def _normalized(model: Model, x: Array, name: str) -> Array:
    mean = np.mean(x * x, -1, keepdims=True)
    epsilon = np.float32(model.fields["attention.layer_norm_rms_epsilon"])
    return x / np.sqrt(mean + epsilon) * model.floats(name)


def _attention(model: Model, name: str, x: Array, layer: int) -> Array:
    x = _normalized(model, x, f"{name}.attn_norm.weight")
    if model.kind == "phi3":
        whole = x @ model.floats(f"{name}.attn_qkv.weight").T
        parts = np.split(whole, [HEADS * LENGTH, (HEADS + SHARED) * LENGTH], -1)
        q, k, v = (each.reshape(len(x), -1, LENGTH).swapaxes(0, 1) for each in parts)
    else:
        q, k, v = (_heads(model, f"{name}.attn_{part}", x) for part in "qkv")
    window = model.fields.get("attention.sliding_window", 0)
    slides = bool(window) and (model.kind != "gemma3" or layer % 6 < 5)
    q, k = (_rotated(model, each, slides=slides) for each in (q, k))
    k, v = (np.repeat(each, HEADS // SHARED, 0) for each in (k, v))
    hidden = np.triu(np.full((len(x), len(x)), -np.inf, np.float32), 1)
    if slides:
        hidden += np.tril(np.full((len(x), len(x)), -np.inf, np.float32), -window)
    scores = q @ k.swapaxes(1, 2) / np.float32(LENGTH**0.5) + hidden
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weights / weights.sum(-1, keepdims=True)) @ v
    mixed = mixed.swapaxes(0, 1).reshape(len(x), -1)
    return mixed @ model.floats(f"{name}.attn_output.weight").T


def _heads(model: Model, name: str, x: Array) -> Array:
    """Return heads, [heads, tokens, length]."""
    x = x @ model.floats(f"{name}.weight").T
    if f"{name}.bias" in model.tensors:
        x = x + model.floats(f"{name}.bias")
    x = x.reshape(len(x), -1, LENGTH)
    if f"{name}_norm.weight" in model.tensors:
        x = _normalized(model, x, f"{name}_norm.weight")
    return x.swapaxes(0, 1)


def _rotated(model: Model, x: Array, *, slides: bool) -> Array:
    """Rotate heads by positions: neighbours in a llama, halves elsewhere."""
    fields: Mapping[str, Any] = {} if slides and model.kind == "gemma3" else model.fields
    rotated = fields.get("rope.dimension_count", LENGTH)
    half = rotated // 2
    powers = fields.get("rope.freq_base", 10000.0) ** -(np.arange(half) / half)
    if fields.get("rope.scaling.type") == "linear":
        powers = powers / fields["rope.scaling.factor"]
    if "rope_freqs.weight" in model.tensors:
        powers = powers / model.floats("rope_freqs.weight")
    angles = np.arange(x.shape[1])[:, None] * powers
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    found = x.copy()
    near = model.kind == "llama"
    first = slice(0, rotated, 2) if near else slice(0, half)
    second = slice(1, rotated, 2) if near else slice(half, rotated)
    found[..., first] = x[..., first] * cos - x[..., second] * sin
    found[..., second] = x[..., second] * cos + x[..., first] * sin
    return found


def _feed_forward(model: Model, name: str, x: Array) -> Array:
    x = _normalized(model, x, f"{name}.ffn_norm.weight")
    if model.kind == "phi3":
        gate, up = np.split(x @ model.floats(f"{name}.ffn_up.weight").T, 2, -1)
    else:
        gate, up = (x @ model.floats(f"{name}.ffn_{part}.weight").T for part in ("gate", "up"))
    if model.kind == "gemma3":
        gate = gate / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3)))
    else:
        gate = gate / (1 + np.exp(-gate))
    inside = (gate * up).astype(np.float32)
    return inside @ model.floats(f"{name}.ffn_down.weight").T
