"""Transformers of open lengths as exporters write them, before training: norms of ones, no biases.

Weights are large enough to be seen among the private memory of a process.
"""

import math
from dataclasses import dataclass

import numpy as np

from tests.zoo.net import Net
from tests.zoo.open_lengths import opened

HIDDEN, HEADS, LAYERS, VOCABULARY, CONTEXT = 256, 4, 3, 2000, 128
EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Kind:
    """Style in which an exporter writes a family.

    Attributes:
        norm: `layer` as one operator, `unshifted` without its bias, `decomposed`, or `rms`.
        stored: Type of the matrices in the file, `float16` and `int8` ones made real by a node.
        has_biases: Whether products are followed by an Add of zeros.
        is_causal: Whether a place sees only those before it.
        is_gated: Whether the inner layer is the product of two.
        is_rotary: Whether places are angles instead of rows of a table.
        is_gemm: Whether products are of rows, with the bias in them.
        is_tied: Whether the last product is by the table of words.
    """

    norm: str
    stored: str = "float32"
    has_biases: bool = True
    is_causal: bool = False
    is_gated: bool = False
    is_rotary: bool = False
    is_gemm: bool = False
    is_tied: bool = False


EXPORTS = {
    "roberta": Kind("layer"),
    "distilbert": Kind("decomposed"),
    "modernbert": Kind("unshifted", has_biases=False, is_gated=True, is_rotary=True),
    "gpt2": Kind("layer", is_causal=True, is_gemm=True, is_tied=True),
    "llama": Kind(
        "rms", "float16", has_biases=False, is_causal=True, is_gated=True, is_rotary=True
    ),
    "qwen2": Kind("rms", "int8", is_causal=True, is_gated=True, is_rotary=True),
}


def export(name: str) -> bytes:
    """A family's file: `ids` and `mask` of [batch, steps]."""
    return _Export(EXPORTS[name]).model()


class _Export:
    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.net = Net(11, opset=21)

    def model(self) -> bytes:
        net = self.net
        net.input("ids", np.zeros((1, 1), np.int64))
        net.input("mask", np.ones((1, 1), np.int64))
        words = net.weight(VOCABULARY, HIDDEN, fan_in=2)
        x = net("Gather", words, "ids")
        steps = self._length("ids", 1)
        self.places = net("Range", self._integer(0), steps, self._integer(1))
        if not self.kind.is_rotary:
            x = net("Add", x, net("Gather", net.weight(CONTEXT, HIDDEN, fan_in=2), self.places))
        hidden_away = self._hidden_away()
        for _ in range(LAYERS):
            x = net("Add", x, self._attended(self._norm(x), hidden_away))
            x = net("Add", x, self._inner(self._norm(x)))
        x = self._norm(x)
        if self.kind.is_tied:
            x = net("MatMul", x, net("Transpose", words, perm=[1, 0]))
        net.output(x)
        return opened(net, {"ids": ("batch", "steps"), "mask": ("batch", "steps")})

    def _attended(self, x: str, hidden_away: str) -> str:
        net = self.net
        query, key, value = (self._heads(self._dense(x, HIDDEN, HIDDEN)) for _ in range(3))
        if self.kind.is_rotary:
            query, key = self._turned(query), self._turned(key)
        scores = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net("Mul", scores, net.scalar(1 / math.sqrt(HIDDEN // HEADS)))
        shares = net("Softmax", net("Add", scores, hidden_away), axis=-1)
        mixed = net("Transpose", net("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self._dense(net("Reshape", mixed, net.ints(0, 0, -1)), HIDDEN, HIDDEN)

    def _inner(self, x: str) -> str:
        net, inner = self.net, 3 * HIDDEN
        if self.kind.is_gated:
            gate, other = self._dense(x, HIDDEN, inner), self._dense(x, HIDDEN, inner)
            return self._dense(net("Mul", self._swish(gate), other), inner, HIDDEN)
        x = self._dense(x, HIDDEN, inner)
        bell = net("Add", net("Erf", net("Div", x, net.scalar(math.sqrt(2)))), net.scalar(1))
        return self._dense(net("Mul", net("Mul", x, bell), net.scalar(0.5)), inner, HIDDEN)

    def _swish(self, x: str) -> str:
        return self.net("Mul", x, self.net("Sigmoid", x))

    def _norm(self, x: str) -> str:
        net, norm = self.net, self.kind.norm
        ones, zeros = net.constant(np.ones(HIDDEN, "f4")), net.constant(np.zeros(HIDDEN, "f4"))
        if norm == "layer":
            return net("LayerNormalization", x, ones, zeros, epsilon=EPSILON)
        if norm == "unshifted":
            return net("LayerNormalization", x, ones, epsilon=EPSILON)
        if norm == "decomposed":
            x = net("Sub", x, net("ReduceMean", x, net.ints(-1)))
        square = net("ReduceMean", net("Pow", x, net.scalar(2)), net.ints(-1))
        deviation = net("Sqrt", net("Add", square, net.scalar(EPSILON)))
        if norm == "decomposed":
            return net("Add", net("Mul", net("Div", x, deviation), ones), zeros)
        return net("Mul", ones, net("Mul", x, net("Reciprocal", deviation)))

    def _dense(self, x: str, before: int, after: int) -> str:
        net, kind = self.net, self.kind
        matrix = self._matrix(before, after)
        zeros = net.constant(np.zeros(after, "f4"))
        if kind.is_gemm:
            shape = net("Concat", net("Shape", x, start=0, end=2), net.ints(after), axis=0)
            rows = net("Reshape", x, net.ints(-1, before))
            return net("Reshape", net("Gemm", rows, matrix, zeros), shape)
        product = net("MatMul", x, matrix)
        return net("Add", product, zeros) if kind.has_biases else product

    def _matrix(self, before: int, after: int) -> str:
        net = self.net
        numbers = (net.random.standard_normal((before, after)) / math.sqrt(before)).astype("f4")
        if self.kind.stored == "float16":
            return net("Cast", net.constant(numbers.astype("f2")), to=1)
        if self.kind.stored == "int8":
            scale = (np.abs(numbers).max(0) / 127).astype("f4")
            integers = np.round(numbers / scale).astype("i1")
            return net("DequantizeLinear", net.constant(integers), net.constant(scale), axis=1)
        return net.constant(numbers)

    def _heads(self, x: str) -> str:
        apart = self.net("Reshape", x, self.net.ints(0, 0, HEADS, HIDDEN // HEADS))
        return self.net("Transpose", apart, perm=[0, 2, 1, 3])

    def _turned(self, x: str) -> str:
        net, half = self.net, HIDDEN // HEADS // 2
        speeds = net.constant((10000.0 ** -(np.arange(half) / half)).astype("f4")[None])
        places = net("Cast", net("Unsqueeze", self.places, net.ints(1)), to=1)
        angles = net("Mul", places, speeds)
        angles = net("Concat", angles, angles, axis=-1)
        first, second = net.many("Split", 2, x, axis=-1, num_outputs=2)
        other = net("Concat", net("Neg", second), first, axis=-1)
        return net("Add", net("Mul", x, net("Cos", angles)), net("Mul", other, net("Sin", angles)))

    def _hidden_away(self) -> str:
        """Zero where a place sees another, and a large negative number elsewhere."""
        net = self.net
        kept = net("Cast", net("Unsqueeze", "mask", net.ints(1, 2)), to=9)
        if self.kind.is_causal:
            after = net("Unsqueeze", self.places, net.ints(0))
            before = net("Unsqueeze", self.places, net.ints(1))
            kept = net("And", kept, net("LessOrEqual", after, before))
        return net("Where", kept, net.scalar(0), net.scalar(-1e9))

    def _length(self, x: str, axis: int) -> str:
        return self.net("Gather", self.net("Shape", x), self._integer(axis), axis=0)

    def _integer(self, value: int) -> str:
        return self.net.constant(np.int64(value))
