"""Small encoders in GGUF, and their equations in NumPy."""

from collections.abc import Mapping, Sequence
from math import erf
from typing import Any

import numpy as np

from tests.frontend.gguf.decoders import Array, Model
from tests.frontend.gguf.written import FORMS, Tensor, random_blocks

WIDTH, INNER, LAYERS, HEADS, CONTEXT, LABELS = 64, 96, 2, 4, 64, 1
WORDS = ("the", "cat", "sat", "on", "a", "mat", "##s", "dog", "ran", "far", "!", "in", "house")
TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
ERF = np.vectorize(erf, otypes=[np.float32])


def encoder(
    type_: str = "F32", *, pooling: int | None = 1, labels: int = 0, is_packed: bool = False,
    context: int = CONTEXT, layers: int = LAYERS, **fields: Any,
) -> Model:  # fmt: skip
    """Return a small encoder with random weights; `labels` numbers for a pair, or vectors."""
    known = {
        "block_count": layers, "embedding_length": WIDTH, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.layer_norm_epsilon": 1e-5,
        "attention.causal": False, "context_length": context, **fields,
    }  # fmt: skip
    if pooling is not None:
        known["pooling_type"] = ("u32", pooling)
    model = Model("bert", known)

    def matrix(name: str, rows: int, depth: int, kind: str = type_) -> None:
        fits = kind not in FORMS or depth % FORMS[kind][0] == 0
        block = random_blocks(kind if fits else "Q8_0", rows, depth, len(model.tensors))
        model.tensors[f"{name}.weight"] = block

    def vector(name: str, length: int, around: float = 0.0) -> None:
        random = np.random.default_rng(len(model.tensors))
        model.tensors[name] = Tensor.floats(around + 0.3 * random.standard_normal(length))

    def linear(name: str, rows: int, depth: int) -> None:
        matrix(name, rows, depth)
        vector(f"{name}.bias", rows)

    def norm(name: str) -> None:
        vector(f"{name}.weight", WIDTH, 1.0)
        vector(f"{name}.bias", WIDTH)

    matrix("token_embd", len(TOKENS), WIDTH)
    matrix("token_types", 2, WIDTH, "F32")
    matrix("position_embd", context, WIDTH, "F32")
    norm("token_embd_norm")
    for layer in range(layers):
        name = f"blk.{layer}"
        parts = {"attn_qkv": 3} if is_packed else dict.fromkeys(("attn_q", "attn_k", "attn_v"), 1)
        for part, count in parts.items():
            linear(f"{name}.{part}", count * WIDTH, WIDTH)
        linear(f"{name}.attn_output", WIDTH, WIDTH)
        norm(f"{name}.attn_output_norm")
        linear(f"{name}.ffn_up", INNER, WIDTH)
        linear(f"{name}.ffn_down", WIDTH, INNER)
        norm(f"{name}.layer_output_norm")
    if labels:
        linear("cls", WIDTH, WIDTH)
        linear("cls.output", labels, WIDTH)
    return model


def vocabulary_fields() -> dict[str, Any]:
    """Return the keys of a file with these tokens, as llama.cpp's converter writes them."""
    tokens = [
        each.removeprefix("##") if each.startswith("##") else each if each[0] == "[" else f"▁{each}"
        for each in TOKENS
    ]
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "jina-v2-en",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if each[0] == "[" else 1 for each in TOKENS],
        "tokenizer.ggml.padding_token_id": ("u32", 0),
        "tokenizer.ggml.unknown_token_id": ("u32", 1),
        "tokenizer.ggml.cls_token_id": ("u32", 2),
        "tokenizer.ggml.bos_token_id": ("u32", 2),
        "tokenizer.ggml.seperator_token_id": ("u32", 3),
        "tokenizer.ggml.mask_token_id": ("u32", 4),
        "tokenizer.ggml.token_type_count": ("u32", 2),
    }


def embedding_model(type_: str = "F32", **options: Any) -> bytes:
    """Return an encoder in GGUF that takes texts."""
    return encoder(type_, **options).written(vocabulary_fields())


def hidden(model: Model, ids: Sequence[int], types: Sequence[int] | None = None) -> Array:
    """Compute the last layer's tokens `[tokens, width]` in float32, by the equations."""
    x = model.floats("token_embd.weight")[list(ids)]
    x = x + model.floats("token_types.weight")[list(types or [0] * len(ids))]
    x = x + model.floats("position_embd.weight")[: len(ids)]
    x = _normalized(model, x, "token_embd_norm")
    for layer in range(model.fields["block_count"]):
        name = f"blk.{layer}"
        if f"{name}.attn_qkv.weight" in model.tensors:
            parts = np.split(_linear(model, x, f"{name}.attn_qkv"), 3, -1)
        else:
            parts = [_linear(model, x, f"{name}.attn_{part}") for part in "qkv"]
        q, k, v = (part.reshape(len(ids), HEADS, -1).swapaxes(0, 1) for part in parts)
        scores = q @ k.swapaxes(1, 2) / np.float32(q.shape[-1] ** 0.5)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ v
        mixed = mixed.swapaxes(0, 1).reshape(len(ids), -1)
        x = x + _linear(model, mixed, f"{name}.attn_output")
        x = _normalized(model, x, f"{name}.attn_output_norm")
        inside = _linear(model, x, f"{name}.ffn_up")
        inside = inside * (1 + ERF(inside / 2**0.5)) / 2
        x = _normalized(model, x + _linear(model, inside, f"{name}.ffn_down"),
                        f"{name}.layer_output_norm")  # fmt: skip
    return x


def score(model: Model, ids: Sequence[int], types: Sequence[int]) -> Array:
    """Compute the numbers of a pair."""
    first = hidden(model, ids, types)[:1]
    return _linear(model, np.tanh(_linear(model, first, "cls")), "cls.output")[0]


def vector(model: Model, ids: Sequence[int], pooling: str = "mean") -> Array:
    """Compute the normalized vector of a text."""
    tokens = hidden(model, ids)
    found = {"mean": tokens.mean(0), "cls": tokens[0], "last": tokens[-1]}[pooling]
    return found / np.linalg.norm(found)


def _linear(model: Model, x: Array, name: str) -> Array:
    return x @ model.floats(f"{name}.weight").T + model.floats(f"{name}.bias")


def _normalized(model: Model, x: Array, name: str) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    root = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    return centred / root * model.floats(f"{name}.weight") + model.floats(f"{name}.bias")


def ids_of(words: Mapping[str, int] | str) -> list[int]:
    """Return the tokens of known words."""
    return [2, *(TOKENS.index(word) for word in str(words).split()), 3]
