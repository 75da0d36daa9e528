"""Parts of transformers, spelled as torch's exporters spell them."""

import math
from dataclasses import dataclass

import numpy as np

from tests.zoo.net import Net

DYNAMO, TORCHSCRIPT = 20, 14
"""Opsets: of today's exporter with an operator for each layer, and of older decomposed exports."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Division of hidden numbers among heads."""

    count: int
    length: int

    @property
    def hidden(self) -> int:
        """Numbers of all heads together."""
        return self.count * self.length


@dataclass(frozen=True, slots=True)
class Layers:
    """Writes layers into a net; the net's opset says in which spelling."""

    net: Net
    heads: Heads
    batch: int

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.heads.hidden

    @property
    def is_decomposed(self) -> bool:
        """Whether normalizations and activations are written in arithmetic."""
        return self.net.opset < DYNAMO

    def norm(self, x: str) -> str:
        """Layer normalization over the last axis."""
        net, scale, shift = self.net, self.net.positive(self.hidden), self.net.bias(self.hidden)
        if not self.is_decomposed:
            return net("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5, stash_type=1)
        centred = net("Sub", x, net("ReduceMean", x, axes=[-1], keepdims=1))
        square = net("Pow", centred, net.scalar(2))
        variance = net("ReduceMean", square, axes=[-1], keepdims=1)
        deviation = net("Sqrt", net("Add", variance, net.scalar(1e-5)))
        return net("Add", net("Mul", net("Div", centred, deviation), scale), shift)

    def gelu(self, x: str) -> str:
        """Write a Gelu by the error function."""
        net = self.net
        if not self.is_decomposed:
            return net("Gelu", x, approximate="none")
        inner = net("Erf", net("Div", x, net.scalar(math.sqrt(2))))
        product = net("Mul", x, net("Add", inner, net.scalar(1)))
        return net("Mul", product, net.scalar(0.5))

    def gelu_by_tanh(self, x: str) -> str:
        """GPT-2's approximation, in arithmetic in every spelling."""
        net = self.net
        half = net("Mul", x, net.scalar(0.5))
        cube = net("Mul", net("Pow", x, net.scalar(3)), net.scalar(0.044715))
        inner = net("Mul", net("Add", x, cube), net.scalar(math.sqrt(2 / math.pi)))
        return net("Mul", half, net("Add", net("Tanh", inner), net.scalar(1)))

    def dense(self, x: str, before: int, after: int, *, bias: bool = True) -> str:
        """`torch.nn.Linear`: a product with a matrix, and a bias."""
        net = self.net
        y = net("MatMul", x, net.weight(before, after, fan_in=2 * before))
        if not bias:
            return y
        operands = (net.bias(after), y) if self.is_decomposed else (y, net.bias(after))
        return net("Add", *operands)

    def gemm(self, x: str, before: int, after: int) -> str:
        """Transformers' `Conv1D`: rows flattened around a Gemm."""
        net = self.net
        flat = self.shaped(x, -1, before)
        y = net("Gemm", flat, net.weight(before, after, fan_in=2 * before), net.bias(after))
        return self.shaped(y, self.batch, -1, after)

    def shaped(self, x: str, *shape: int) -> str:
        """A Reshape as each exporter writes it."""
        given = {} if self.is_decomposed else {"allowzero": int(0 in shape)}
        return self.net("Reshape", x, self.net.ints(*shape), **given)

    def apart(self, x: str) -> str:
        """[batch, steps, hidden] to [batch, heads, steps, length]."""
        y = self.shaped(x, self.batch, -1, self.heads.count, self.heads.length)
        return self.net("Transpose", y, perm=[0, 2, 1, 3])

    def scores(self, query: str, key: str, mask: str = "") -> str:
        """Softmax of the scaled products of queries and keys [batch, heads, steps, length]."""
        net, length = self.net, self.heads.length
        if self.is_decomposed:
            products = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
            products = net("Div", products, net.scalar(math.sqrt(length)))
            return net("Softmax", net("Add", products, mask) if mask else products, axis=-1)
        flat = net("Transpose", self.shaped(key, self.batch * self.heads.count, -1, length),
                   perm=[0, 2, 1])  # fmt: skip
        turned = self.shaped(flat, self.batch, self.heads.count, length, -1)
        scale = net.scalar(length**-0.25)
        products = net("MatMul", net("Mul", query, scale), net("Mul", turned, scale))
        if not mask:
            return net("Softmax", products, axis=-1)
        weights = net("Softmax", net("Add", products, mask), axis=-1)
        return net("Where", net("IsNaN", weights), net.scalar(0), weights)

    def mixed(self, weights: str, value: str) -> str:
        """Values weighed by scores, heads joined."""
        y = self.net("Transpose", self.net("MatMul", weights, value), perm=[0, 2, 1, 3])
        return self.shaped(y, self.batch, -1, self.hidden)


def causal_mask(net: Net, steps: int) -> str:
    """Zero for what a step may see, the least number for what comes after it."""
    ahead = np.triu(np.ones((1, 1, steps, steps), bool), 1)
    return net.constant(np.where(ahead, np.finfo(np.float32).min, np.float32(0)))


def tokens(net: Net, name: str, vocabulary: int, *shape: int) -> str:
    """An input of token numbers."""
    return net.input(name, net.random.integers(0, vocabulary, shape))
