"""Transformers: BERT with the head that it is trained with, and GPT-2."""

import math
from dataclasses import dataclass

import numpy as np

from tightship.sample.network import Length, Network


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of a transformer; a head has `hidden / heads` numbers."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    positions: int


BASE = Size(12, 768, 12, 30522, 512)
"""BERT-base."""
SMALL = Size(12, 768, 12, 50257, 1024)
"""GPT-2 small."""


def bert(net: Network, batch: Length, steps: Length, size: Size = BASE) -> None:
    """Write BERT: scores of every word at every place, normalized after each part."""
    ids = net.declare("input_ids", np.int64, (batch, steps))
    mask = net.declare("attention_mask", np.int64, (batch, steps))
    kept = net("Cast", net("Unsqueeze", mask, net.ints(1, 2)), to=1)
    hidden_away = net(
        "Mul", net("Sub", net.scalar(1), kept), net.scalar(float(np.finfo(np.float32).min))
    )
    words = net.weight(size.vocabulary, size.hidden, fan_in=2 * size.hidden)
    x = _norm(net, _embedded(net, ids, words, size), size)
    for _ in range(size.layers):
        x = _norm(net, net("Add", _attention(net, x, hidden_away, size), x), size)
        inner = net("Gelu", _dense(net, x, size.hidden, 4 * size.hidden))
        x = _norm(net, net("Add", _dense(net, inner, 4 * size.hidden, size.hidden), x), size)
    x = _norm(net, net("Gelu", _dense(net, x, size.hidden, size.hidden)), size)
    net.output(net("Add", _scores(net, x, words), net.bias(size.vocabulary)))


def gpt2(net: Network, batch: Length, steps: Length, size: Size = SMALL) -> None:
    """Write GPT-2: scores of the next word at every place, normalized before each part."""
    ids = net.declare("input_ids", np.int64, (batch, steps))
    words = net.weight(size.vocabulary, size.hidden, fan_in=2 * size.hidden)
    x = _embedded(net, ids, words, size)
    ahead = np.triu(np.full((1, 1, size.positions, size.positions), -np.inf, np.float32), 1)
    length = _length(net, ids)
    ends = net("Concat", length, length, axis=0)
    mask = net("Slice", net.constant(ahead), net.ints(0, 0), ends, net.ints(2, 3))
    for _ in range(size.layers):
        x = net("Add", x, _attention(net, _norm(net, x, size), mask, size))
        inner = _dense(net, _norm(net, x, size), size.hidden, 4 * size.hidden)
        inner = net("Gelu", inner, approximate="tanh")
        x = net("Add", x, _dense(net, inner, 4 * size.hidden, size.hidden))
    net.output(_scores(net, _norm(net, x, size), words))


def _length(net: Network, ids: str) -> str:
    """Write the number of places, int64 of shape [1]."""
    return net("Shape", ids, start=1, end=2)


def _embedded(net: Network, ids: str, words: str, size: Size) -> str:
    """Write the sum of a vector for each word and one for each place."""
    places = net.weight(size.positions, size.hidden, fan_in=2 * size.hidden)
    used = net("Slice", places, net.ints(0), _length(net, ids), net.ints(0))
    return net("Add", net("Gather", words, ids), used)


def _scores(net: Network, x: str, words: str) -> str:
    """Write the score of every word, whose vectors are those of the inputs."""
    return net("MatMul", x, net("Transpose", words, perm=[1, 0]))


def _attention(net: Network, x: str, mask: str, size: Size) -> str:
    """Write attention of [batch, places, hidden], and its projection."""

    def apart(y: str) -> str:
        split = net("Reshape", y, net.ints(0, 0, size.heads, size.hidden // size.heads))
        return net("Transpose", split, perm=[0, 2, 1, 3])

    query, key, value = (apart(_dense(net, x, size.hidden, size.hidden)) for _ in range(3))
    scores = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
    scaled = net("Div", scores, net.scalar(math.sqrt(size.hidden / size.heads)))
    weights = net("Softmax", net("Add", scaled, mask), axis=-1)
    joined = net("Transpose", net("MatMul", weights, value), perm=[0, 2, 1, 3])
    mixed = net("Reshape", joined, net.ints(0, 0, size.hidden))
    return _dense(net, mixed, size.hidden, size.hidden)


def _norm(net: Network, x: str, size: Size) -> str:
    return net("LayerNormalization", x, net.positive(size.hidden), net.bias(size.hidden))


def _dense(net: Network, x: str, before: int, after: int) -> str:
    return net(
        "Add", net("MatMul", x, net.weight(before, after, fan_in=2 * before)), net.bias(after)
    )
