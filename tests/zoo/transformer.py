"""Transformers as exporters write them: operators of today, and decomposed."""

import math

import numpy as np

from tests.zoo.net import Case, Net


class _Writer:
    """Parts that both encoders and decoders are made of."""

    def __init__(self, net: Net, hidden: int, heads: int, *, decomposed: bool) -> None:
        self.net, self.hidden, self.heads, self.decomposed = net, hidden, heads, decomposed

    def norm(self, x: str) -> str:
        """Layer normalization over the last axis."""
        net, scale, shift = self.net, self.net.positive(self.hidden), self.net.bias(self.hidden)
        if not self.decomposed:
            return net("LayerNormalization", x, scale, shift, epsilon=1e-5)
        centred = net("Sub", x, net("ReduceMean", x, net.ints(-1)))
        variance = net("ReduceMean", net("Pow", centred, net.scalar(2)), net.ints(-1))
        deviation = net("Sqrt", net("Add", variance, net.scalar(1e-5)))
        return net("Add", net("Mul", net("Div", centred, deviation), scale), shift)

    def gelu(self, x: str) -> str:
        """Write a Gelu by the error function."""
        net = self.net
        if not self.decomposed:
            return net("Gelu", x)
        inner = net("Erf", net("Div", x, net.scalar(math.sqrt(2))))
        product = net("Mul", x, net("Add", inner, net.scalar(1)))
        return net("Mul", product, net.scalar(0.5))

    def tanh_gelu(self, x: str) -> str:
        """GPT-2's own approximation."""
        net = self.net
        cube = net("Mul", net("Pow", x, net.scalar(3)), net.scalar(0.044715))
        inner = net("Mul", net("Add", x, cube), net.scalar(math.sqrt(2 / math.pi)))
        return net("Mul", net("Mul", x, net.scalar(0.5)),
                   net("Add", net("Tanh", inner), net.scalar(1)))  # fmt: skip

    def dense(self, x: str, before: int, after: int) -> str:
        """A product with a matrix, and a bias."""
        net = self.net
        product = net("MatMul", x, net.weight(before, after, fan_in=2 * before))
        return net("Add", net.bias(after), product)

    def split_heads(self, x: str, perm: list[int]) -> str:
        """[batch, steps, hidden] to heads, axes permuted."""
        net = self.net
        apart = net("Reshape", x, net.ints(0, 0, self.heads, self.hidden // self.heads))
        return net("Transpose", apart, perm=perm)

    def attended(self, scores: str, value: str) -> str:
        """Softmax of the scores times the values, heads joined."""
        net = self.net
        mixed = net("MatMul", net("Softmax", scores, axis=-1), value)
        joined = net("Transpose", mixed, perm=[0, 2, 1, 3])
        return net("Reshape", joined, net.ints(0, 0, self.hidden))


def encoder(
    layers: int, hidden: int, heads: int, steps: int, *, decomposed: bool, batch: int = 1
) -> Case:
    """BERT: embedded int64 tokens, masked attention, post-normalization, pooled first token."""
    net = Net(layers, opset=20)
    return encoder_in(net, layers, (hidden, heads), (batch, steps), decomposed=decomposed)


def encoder_in(
    net: Net, layers: int, wide: tuple[int, int], text: tuple[int, int], *, decomposed: bool
) -> Case:
    """`encoder`, written into a net of the caller's: hidden and heads, batch and steps."""
    (hidden, heads), (batch, steps) = wide, text
    write = _Writer(net, hidden, heads, decomposed=decomposed)
    tokens = net.random.integers(0, 100, (batch, steps))
    ids = net.input("ids", tokens)
    mask = net.input("mask", (np.arange(steps) < steps - 3).astype(np.int64)[None].repeat(batch, 0))
    words = net("Gather", net.weight(100, hidden, fan_in=2), ids)
    x = write.norm(net("Add", words, net.weight(1, steps, hidden, fan_in=2)))
    kept = net("Cast", net("Unsqueeze", mask, net.ints(1, 2)), to=1)
    hidden_away = net("Mul", net("Sub", net.scalar(1), kept), net.scalar(-10000))
    for _ in range(layers):
        query, key, value = (
            write.split_heads(write.dense(x, hidden, hidden), perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = net("Div", net("MatMul", query, key), net.scalar(math.sqrt(hidden // heads)))
        mixed = write.attended(net("Add", scores, hidden_away), value)
        x = write.norm(net("Add", write.dense(mixed, hidden, hidden), x))
        inner = write.gelu(write.dense(x, hidden, 4 * hidden))
        x = write.norm(net("Add", write.dense(inner, 4 * hidden, hidden), x))
    first = net("Gather", x, net.constant(np.int64(0)), axis=1)
    pooled = net("Tanh", net("Gemm", first, net.weight(hidden, hidden), net.bias(hidden)))
    net.output(x, pooled)
    return net.case()


def decoder(layers: int, hidden: int, heads: int, steps: int, batch: int = 1) -> Case:
    """GPT-2: causal mask by Where, one matrix for query, key and value, keys as outputs."""
    net = Net(7)
    write = _Writer(net, hidden, heads, decomposed=True)
    x = net.normal("x", batch, steps, hidden)
    causal = net.constant(np.tril(np.ones((1, 1, steps, steps), bool)))
    for _ in range(layers):
        y = write.norm(x)
        flat = net("Reshape", y, net.ints(-1, hidden))
        mixed = net("Gemm", flat, net.weight(hidden, 3 * hidden, fan_in=2 * hidden),
                    net.bias(3 * hidden))  # fmt: skip
        mixed = net("Reshape", mixed, net.ints(batch, steps, 3 * hidden))
        parts = net.many("Split", 3, mixed, axis=2, num_outputs=3)
        query, key, value = (write.split_heads(part, [0, 2, 1, 3]) for part in parts)
        scores = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net("Mul", scores, net.scalar(1 / math.sqrt(hidden // heads)))
        masked = net("Where", causal, scores, net.scalar(np.finfo(np.float32).min))
        x = net("Add", write.dense(write.attended(masked, value), hidden, hidden), x)
        y = write.dense(write.norm(x), hidden, 4 * hidden)
        x = net("Add", x, write.dense(write.tanh_gelu(y), 4 * hidden, hidden))
        net.output(key, value)
    net.output(write.norm(x))
    return net.case()
