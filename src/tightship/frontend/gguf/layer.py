"""A layer of a decoder: attention and feed-forward, each on normalized tokens."""

from dataclasses import dataclass

from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.parameters import Parameters
from tightship.frontend.gguf.weights import Weights

Angles = tuple[str, str]
"""Cosines and sines of the new tokens."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Values that follow from the numbers of tokens: lengths for attention, angles' functions."""

    last: str
    total: str
    angles: Angles
    window_angles: Angles


@dataclass(frozen=True, slots=True)
class LayerWriter:
    """Writer of layers of one decoder."""

    nodes: Nodes
    weights: Weights
    parameters: Parameters
    positions: Positions

    def write(self, index: int, x: str) -> str:
        """Write a layer; return its tokens, [batch, tokens, width].

        Raises:
            FormatError, GraphError: A tensor does not fit.
        """
        name = f"blk.{index}"
        self.nodes.begin(f"{name}.")
        mixed = self._attention(index, name, self.normalized(x, name, "attn_norm"))
        x = self.nodes("Add", x, self._after(mixed, name, "post_attention_norm"))
        inner = self._feed_forward(name, self.normalized(x, name, "ffn_norm"))
        return self.nodes("Add", x, self._after(inner, name, "post_ffw_norm"))

    def _after(self, x: str, name: str, norm: str) -> str:
        return self.normalized(x, name, norm) if self.parameters.kind.has_gemma_parts else x

    def normalized(self, x: str, name: str, part: str) -> str:
        """Write the normalization of tokens by the root of their mean square."""
        stem = f"{name}.{part}" if name else part
        scale = self.weights.vector(f"{stem}.weight", self.parameters.width)
        return self._by_root(x, scale)

    def _by_root(self, x: str, scale: str) -> str:
        return self.nodes("RMSNormalization", x, scale, axis=-1, epsilon=self.parameters.epsilon)

    def _attention(self, index: int, name: str, x: str) -> str:
        p = self.parameters
        window = p.windows.of(index)
        angles = self.positions.window_angles if window else self.positions.angles
        query, key, value = self._queries_keys_values(name, x)
        mixed, _, _ = self.nodes.many(
            "GroupQueryAttention",
            [f"{name}.mixed", f"present.{index}.key", f"present.{index}.value"],
            self._rotated(query, p.heads, angles), self._rotated(key, p.shared, angles), value,
            f"past_key_values.{index}.key", f"past_key_values.{index}.value",
            self.positions.last, self.positions.total,
            num_heads=p.heads, kv_num_heads=p.shared, scale=p.scale,
            local_window_size=window or -1,
        )  # fmt: skip
        return self.weights.product(
            mixed, f"{name}.attn_output.weight", p.width, p.heads * p.length
        )

    def _queries_keys_values(self, name: str, x: str) -> tuple[str, str, str]:
        """Write queries, keys and values, [batch, tokens, heads * length]."""
        p = self.parameters
        if not p.kind.has_packed_parts:
            query, key = (
                self._normalized_heads(self._projected(x, f"{name}.attn_{part}", count), name, part)
                for part, count in (("q", p.heads), ("k", p.shared))
            )
            return query, key, self._projected(x, f"{name}.attn_v", p.shared)
        sizes = [p.heads * p.length, p.shared * p.length, p.shared * p.length]
        x = self.weights.product(x, f"{name}.attn_qkv.weight", sum(sizes), p.width)
        names = [f"{name}.{part}" for part in ("query", "key", "value")]
        query, key, value = self.nodes.many("Split", names, x, self.nodes.numbers(sizes), axis=-1)
        return query, key, value

    def _projected(self, x: str, name: str, heads: int) -> str:
        p = self.parameters
        rows = heads * p.length
        x = self.weights.product(x, f"{name}.weight", rows, p.width)
        if not p.kind.has_biases:
            return x
        return self.nodes("Add", x, self.weights.vector(f"{name}.bias", rows))

    def _normalized_heads(self, x: str, name: str, part: str) -> str:
        """Write queries or keys with each head normalized, if the architecture says so."""
        p = self.parameters
        if not p.kind.has_head_norms:
            return x
        heads = p.heads if part == "q" else p.shared
        apart = self.nodes("Reshape", x, self.nodes.numbers([0, 0, heads, p.length]))
        scale = self.weights.vector(f"{name}.attn_{part}_norm.weight", p.length)
        whole = self.nodes.numbers([0, 0, heads * p.length])
        return self.nodes("Reshape", self._by_root(apart, scale), whole)

    def _rotated(self, x: str, heads: int, angles: Angles) -> str:
        rotary = self.parameters.rotary
        return self.nodes(
            "RotaryEmbedding", x, *angles, num_heads=heads,
            interleaved=int(rotary.are_neighbours),
            rotary_embedding_dim=rotary.length if rotary.length != self.parameters.length else 0,
        )  # fmt: skip

    def _feed_forward(self, name: str, x: str) -> str:
        p = self.parameters
        gate, up = self._gate_and_up(name, x)
        if p.kind.has_gemma_parts:
            gate = self.nodes("Gelu", gate, approximate="tanh")
        else:
            gate = self.nodes("Mul", gate, self.nodes("Sigmoid", gate))
        inside = self.nodes("Mul", gate, up)
        return self.weights.product(inside, f"{name}.ffn_down.weight", p.width, p.inner)

    def _gate_and_up(self, name: str, x: str) -> tuple[str, str]:
        p = self.parameters
        if not p.kind.has_packed_parts:
            gate, up = (
                self.weights.product(x, f"{name}.ffn_{part}.weight", p.inner, p.width)
                for part in ("gate", "up")
            )
            return gate, up
        x = self.weights.product(x, f"{name}.ffn_up.weight", 2 * p.inner, p.width)
        sizes = self.nodes.numbers([p.inner, p.inner])
        names = [f"{name}.gate", f"{name}.up"]
        gate, up = self.nodes.many("Split", names, x, sizes, axis=-1)
        return gate, up
