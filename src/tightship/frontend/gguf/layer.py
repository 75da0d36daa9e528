"""A layer of a decoder: attention and feed-forward, each on normalized tokens."""

from dataclasses import dataclass

from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.parameters import Parameters
from tightship.frontend.gguf.weights import Weights


@dataclass(frozen=True, slots=True)
class Positions:
    """Values that follow from the numbers of tokens: lengths for attention, angles' functions."""

    last: str
    total: str
    cosines: str
    sines: str


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
        self.nodes.prefix = f"{name}."
        x = self.nodes("Add", x, self._attention(index, name, self.normalized(x, name, "attn")))
        return self.nodes("Add", x, self._feed_forward(name, self.normalized(x, name, "ffn")))

    def normalized(self, x: str, name: str, part: str) -> str:
        """Write the normalization of tokens by the root of their mean square."""
        stem = f"{name}.{part}_norm" if name else f"{part}_norm"
        scale = self.weights.vector(f"{stem}.weight", self.parameters.width)
        return self._by_root(x, scale)

    def _by_root(self, x: str, scale: str) -> str:
        return self.nodes("RMSNormalization", x, scale, axis=-1, epsilon=self.parameters.epsilon)

    def _attention(self, index: int, name: str, x: str) -> str:
        p = self.parameters
        query, key = (
            self._rotated(self._heads(x, f"{name}.attn_{part}", count), count)
            for part, count in (("q", p.heads), ("k", p.shared))
        )
        value = self._projected(x, f"{name}.attn_v", p.shared)
        mixed, _, _ = self.nodes.many(
            "GroupQueryAttention",
            [f"{name}.mixed", f"present.{index}.key", f"present.{index}.value"],
            query, key, value, f"past_key_values.{index}.key", f"past_key_values.{index}.value",
            self.positions.last, self.positions.total,
            num_heads=p.heads, kv_num_heads=p.shared,
        )  # fmt: skip
        return self.weights.product(
            mixed, f"{name}.attn_output.weight", p.width, p.heads * p.length
        )

    def _projected(self, x: str, name: str, heads: int) -> str:
        p = self.parameters
        rows = heads * p.length
        x = self.weights.product(x, f"{name}.weight", rows, p.width)
        if not p.kind.has_biases:
            return x
        return self.nodes("Add", x, self.weights.vector(f"{name}.bias", rows))

    def _heads(self, x: str, name: str, heads: int) -> str:
        """Write queries or keys, [batch, tokens, heads * length]."""
        p = self.parameters
        x = self._projected(x, name, heads)
        if not p.kind.has_head_norms:
            return x
        apart = self.nodes("Reshape", x, self.nodes.numbers([0, 0, heads, p.length]))
        scale = self.weights.vector(f"{name}_norm.weight", p.length)
        whole = self.nodes.numbers([0, 0, heads * p.length])
        return self.nodes("Reshape", self._by_root(apart, scale), whole)

    def _rotated(self, x: str, heads: int) -> str:
        rotary = self.parameters.rotary
        return self.nodes(
            "RotaryEmbedding", x, self.positions.cosines, self.positions.sines, num_heads=heads,
            interleaved=int(rotary.are_neighbours),
            rotary_embedding_dim=rotary.length if rotary.length != self.parameters.length else 0,
        )  # fmt: skip

    def _feed_forward(self, name: str, x: str) -> str:
        p = self.parameters
        gate, up = (
            self.weights.product(x, f"{name}.ffn_{part}.weight", p.inner, p.width)
            for part in ("gate", "up")
        )
        inside = self.nodes("Mul", self.nodes("Mul", gate, self.nodes("Sigmoid", gate)), up)
        return self.weights.product(inside, f"{name}.ffn_down.weight", p.width, p.inner)
