"""Architectures of GGUF files: how each differs from a Llama."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Architecture:
    """Kind of decoder, by its name in files.

    Attributes:
        name: Name in `general.architecture`, and before its keys.
        pairs_are_neighbours: Whether rotated pairs are elements 2i and 2i + 1 of a head, rather
            than i and i + d/2.
        has_biases: Whether queries, keys and values have biases.
        has_head_norms: Whether each head of queries and keys is normalized before its rotation.
        has_packed_parts: Whether queries, keys and values are one matrix, and the gate and the
            other half of the first product of a feed-forward another.
        has_gemma_parts: Whether embeddings are scaled by the root of the width, results of
            attention and feed-forward normalized, gates a GELU, and most layers windows.
        keys: Keys beyond `COMMON` that are read.
        idle: Keys beyond `IDLE` that change no result.
    """

    name: str
    pairs_are_neighbours: bool = False
    has_biases: bool = False
    has_head_norms: bool = False
    has_packed_parts: bool = False
    has_gemma_parts: bool = False
    keys: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


COMMON = (
    "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.layer_norm_rms_epsilon", "attention.value_length", "block_count",
    "embedding_length", "feed_forward_length", "rope.dimension_count", "rope.freq_base",
    "rope.scaling.factor", "rope.scaling.type",
)  # fmt: skip
"""Keys that are read of every architecture."""
IDLE = (
    "attention.causal", "context_length", "rope.scaling.original_context_length",
    "rope.scaling.finetuned", "tensor_data_layout", "vocab_size",
)  # fmt: skip
"""Keys that change no result: shapes of tensors tell the vocabulary, rotations have no table."""
ZERO = ("expert_count", "expert_used_count")
"""Keys that must be 0 if they are there."""

_ALL = (
    Architecture("llama", pairs_are_neighbours=True),
    Architecture("qwen2", has_biases=True),
    Architecture("qwen3", has_head_norms=True),
    Architecture("gemma3", has_head_norms=True, has_gemma_parts=True, keys=(
        "attention.sliding_window", "attention.sliding_window_pattern", "final_logit_softcapping",
        "rope.freq_base_swa",
    )),
    Architecture("phi3", has_packed_parts=True, keys=("attention.sliding_window",),
                 idle=("rope.scaling.attn_factor",)),
)  # fmt: skip
ARCHITECTURES: Mapping[str, Architecture] = {each.name: each for each in _ALL}
"""Architectures by name."""
